import { Type } from 'typebox';
import type { EmailContent } from '../../domain/email/content.ts';
import { REPORTED } from '../../domain/email/states.ts';
import { notFound, requireFound } from '../../domain/errors.ts';
import { makeDownloadLinks } from '../../domain/email/download-links.ts';
import { addressees, recipients } from '../../domain/email/outgoing.ts';
import { findAttachments, type ListedAttachment, secondsFromNow } from '../../store/emails/attachments.ts';
import { type Email, findEmail } from '../../store/emails/emails.ts';
import { type EmailDetails, findContent, findEmailDetails } from '../../store/emails/message-details.ts';
import {
  Copy,
  type Fact,
  Facts,
  NumberCell,
  StatusBadge,
  StatusCell,
  Table,
  Text,
  Time,
  Section,
} from '../elements.tsx';
import { BLANK } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { isMoving, Live } from '../live.tsx';
import { type Context, type Filled, type Html, idOf, page, type PageRow, Reply } from '../page.ts';
import { EmailButtons, rescheduleForm } from './email-forms.tsx';
import { PATH, TagLinks } from './emails.tsx';
import { Attempts, Timeline, Workflow } from './message-parts.tsx';

const LINK_LIFETIME_SECONDS = 3_600;

const View = Type.Object({ show: Type.Optional(Type.Union([Type.Literal('html'), Type.Literal('text')])) });

const show = page(View, (context) => emailPage(context, BLANK, context.query.show));

/** The frame of an email's HTML runs no script, posts no form and follows no link. */
const FRAME_POLICY =
  "sandbox; default-src 'none'; img-src https: data:; style-src 'unsafe-inline'; frame-ancestors 'self'";

const preview = page(Type.Object({}), async (context) => {
  const { pool, organization, deps } = context;
  const bodies = await findContent(pool, deps.contents, organization.id, idOf(context));
  return new Reply(Buffer.from(requireFound(bodies, 'email').html ?? ''), {
    headers: {
      'content-security-policy': FRAME_POLICY,
      'x-frame-options': 'SAMEORIGIN',
      'referrer-policy': 'no-referrer',
    },
  });
});

export const rows: readonly PageRow[] = [
  ['GET', `${PATH}/:id`, 'viewer', show],
  ['GET', `${PATH}/:id/html`, 'viewer', preview],
];

/** @param filled the form to reschedule it */
export async function emailPage(context: Context, filled: Filled, view?: 'html' | 'text'): Promise<Html> {
  const { pool, organization, role, deps } = context;
  const id = idOf(context);
  const [email, details, content, files] = await Promise.all([
    findEmail(pool, deps.contents, organization.id, id),
    findEmailDetails(pool, organization.id, id),
    findContent(pool, deps.contents, organization.id, id),
    findAttachments(pool, organization.id, id),
  ]);
  if (!email || !details) throw notFound('email');
  const mayChange = role !== 'viewer';
  return (
    <Layout
      context={context}
      title={email.subject === '' ? '(no subject)' : email.subject}
      crumbs={[{ path: PATH, name: 'Emails' }]}
      actions={mayChange ? <EmailButtons context={context} email={email} /> : ''}
    >
      <Live visit={context} moves={isMoving(email)}>
        {emailFacts(context, email, details)}
        {email.error !== null && (
          <p class="problem whole" safe>
            {email.error}
          </p>
        )}
        <Timeline events={details.timeline} />
        <Recipients email={email} details={details} />
        <Attempts attempts={details.attempts} />
      </Live>
      {mayChange && email.status === 'scheduled' && rescheduleForm(context, email, filled)}
      {contentSection(email, content, view)}
      {fileSection(context, id, files ?? [])}
    </Layout>
  );
}

function emailFacts(context: Context, email: Email, details: EmailDetails): Html {
  const { cc, bcc, reply_to: replyTo, batch_id: batchId, headers } = email;
  const list = (name: string, addresses: readonly string[] | null): Fact =>
    addresses !== null && addresses.length > 0 && [name, <Text text={addresses.join(', ')} />];
  return (
    <Facts
      facts={[
        ['Status', <StatusBadge status={email.status} />],
        email.bounce_reason !== null && ['Bounce reason', <Text text={email.bounce_reason.replaceAll('_', ' ')} />],
        ['From', <Text text={email.from} />],
        list('To', email.to),
        list('Cc', cc),
        list('Bcc', bcc),
        list('Reply to', replyTo),
        ['Accepted', <Time at={email.created_at} />],
        email.scheduled_at !== null && ['Scheduled for', <Time at={email.scheduled_at} />],
        email.marketing && ['Marketing', <Text text="yes, with a link to unsubscribe" />],
        email.tags.length > 0 && ['Tags', <TagLinks tags={email.tags} />],
        batchId !== null && [
          'Batch',
          <a href={`/dashboard/batches/${batchId}`}>
            <code safe>{batchId}</code>
          </a>,
        ],
        details.resend_of !== null && ['Resend of', emailLinks([details.resend_of])],
        details.resent_as !== null && ['Resent as', emailLinks(details.resent_as)],
        details.provider !== null && ['Provider', <Text text={details.provider} />],
        details.provider_message_id !== null && ["The provider's id", <Copy value={details.provider_message_id} />],
        ['Id', <Copy value={email.id} />],
        ['Workflow', <Workflow context={context} id={details.workflow_id} />],
        ...Object.entries(headers).map(([name, value]) => [name, <Text text={value} />] as const),
      ]}
    />
  );
}

function emailLinks(ids: readonly string[]): Html {
  return (
    <>
      {ids.map((id) => (
        <a href={`${PATH}/${id}`}>
          <code safe>{id}</code>
        </a>
      ))}
    </>
  );
}

/** All recipients. A report about one of them implies for the others only that the email was sent. */
function Recipients({ email, details }: { email: Email; details: EmailDetails }): Html {
  const reported = new Map(details.recipients.map((recipient) => [recipient.recipient, recipient]));
  const isOfOne = details.recipients.some(({ status }) => status === email.status);
  const others = isOfOne && REPORTED.some((status) => status === email.status) ? 'sent' : email.status;
  return (
    <Section title="Recipients">
      <Table caption="Recipients" columns={['Recipient', 'Status', 'Reply']}>
        {recipients(addressees(email)).map(({ address }) => {
          const known = reported.get(address.toLowerCase());
          return (
            <tr>
              <th scope="row" safe>
                {address}
              </th>
              <StatusCell status={known?.status ?? others} />
              <td class="sub" safe>
                {[known?.bounce_reason?.replaceAll('_', ' '), known?.error].filter(Boolean).join(': ')}
              </td>
            </tr>
          );
        })}
      </Table>
    </Section>
  );
}

function contentSection(email: Email, content: EmailContent | undefined, view: 'html' | 'text' | undefined): Html {
  const hasHtml = Boolean(content?.html);
  const text = content?.text || null;
  if (!hasHtml && text === null) return <p class="muted">Its content is no longer stored.</p>;
  const shown = view === 'text' && text !== null ? 'text' : hasHtml ? 'html' : 'text';
  return (
    <section id="content">
      <h2>Content</h2>
      {hasHtml && text !== null && (
        <nav class="tabs" aria-label="Content">
          <a href="?show=html#content" aria-current={shown === 'html' ? 'true' : undefined}>
            HTML
          </a>
          <a href="?show=text#content" aria-current={shown === 'text' ? 'true' : undefined}>
            Text
          </a>
        </nav>
      )}
      {shown === 'html' ? (
        <iframe class="preview" src={`${PATH}/${email.id}/html`} title="The email as HTML" sandbox="" loading="lazy" />
      ) : (
        <pre class="preview" tabindex="0" safe>
          {text ?? ''}
        </pre>
      )}
      {shown === 'html' && (
        <p class="hint">
          Shown without scripts, links and embedded files. Images from the web load as for a recipient.
        </p>
      )}
    </section>
  );
}

async function fileSection(context: Context, emailId: string, files: readonly ListedAttachment[]): Promise<Html> {
  if (files.length === 0) return '';
  const links = makeDownloadLinks(context.deps.secretKey);
  const expires = await secondsFromNow(context.pool, LINK_LIFETIME_SECONDS);
  return (
    <Section title="Attachments">
      <Table caption="Attachments" columns={['File', 'Type', 'Size', 'Kept until']}>
        {files.map((file) => (
          <tr>
            <th scope="row">
              {file.kept ? (
                <a href={links.make(emailId, file.id, expires)} download="" safe>
                  {file.filename}
                </a>
              ) : (
                <span safe>{file.filename}</span>
              )}
              {file.inline && <span class="sub">shown inside the HTML</span>}
            </th>
            <td safe>{file.content_type}</td>
            <NumberCell text={sizeInWords(file.size)} />
            <td>{file.kept ? <Time at={file.expires_at} /> : <span class="muted">gone</span>}</td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

function sizeInWords(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  return bytes < 1_048_576 ? `${Math.ceil(bytes / 1_024)} kB` : `${(bytes / 1_048_576).toFixed(1)} MB`;
}
