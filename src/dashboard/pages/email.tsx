import { type Static, Type } from 'typebox';
import { isReported } from '../../domain/email/states.ts';
import { notFound } from '../../domain/errors.ts';
import { LINK_LIFE_SECONDS, makeDownloadLinks } from '../../domain/file-links.ts';
import { addressees, recipients } from '../../domain/email/outgoing.ts';
import { isSuppressedBy } from '../../domain/email/suppression.ts';
import { findResendBlocker } from '../../intake/resend.ts';
import { escapeHtml } from '../../lib/html.ts';
import { findAttachments, type ListedAttachment, secondsFromNow } from '../../store/emails/attachments.ts';
import { type Email, findEmail } from '../../store/emails/emails.ts';
import { type EmailDetails, findContent, findEmailDetails } from '../../store/emails/message-details.ts';
import { snapshot } from '../../store/postgres/pool.ts';
import type { Suppression } from '../../store/suppressions/suppressions.ts';
import {
  type Fact,
  Facts,
  Id,
  inWords,
  NumberCell,
  Section,
  StatusBadge,
  StatusCell,
  Table,
  Text,
  Time,
} from '../elements.tsx';
import { BLANK, Problem } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { Live, mayChangeSoon } from '../live.tsx';
import { type Context, type FormState, type Html, idOf, page, type PageRow } from '../page.ts';
import * as content from './email-content.tsx';
import { VIEWS, WIDTHS } from './email-content.tsx';
import { EmailButtons } from './email-buttons.tsx';
import { Remedy, suppressionsOf } from './email-suppression.tsx';
import { PATH, TagLinks } from './emails.tsx';
import { Attempts, Response, RESPONSE_ID, subjectText, Timeline, Workflow } from './message-parts.tsx';
import { RescheduleForm, tooLateProblem } from './reschedule.tsx';
import { PATH as SUPPRESSIONS } from './suppressions.tsx';

const View = Type.Object({
  show: Type.Optional(Type.Enum([...VIEWS])),
  width: Type.Optional(Type.Enum([...WIDTHS])),
});

const show = page(View, (context) => emailPage(context, BLANK, context.query));

export const rows: readonly PageRow[] = [['GET', `${PATH}/:id`, 'viewer', show], ...content.rows];

/** The page of an email. @param formState the input of the reschedule form */
export async function emailPage(context: Context, formState: FormState, view: Static<typeof View> = {}): Promise<Html> {
  const { pool, organization, role, deps } = context;
  const id = idOf(context);
  // The status, the timeline and the recipients must agree.
  const [email, details, stored, files] = await snapshot(pool, (client) =>
    Promise.all([
      findEmail(client, deps.contents, organization.id, id),
      findEmailDetails(client, organization.id, id),
      findContent(client, deps.contents, organization.id, id),
      findAttachments(client, organization.id, id),
    ]),
  );
  if (!email || !details) throw notFound('email');
  const mayChange = role !== 'viewer';
  const [suppressions, resendBlocker] = await Promise.all([
    suppressionsOf(context, email),
    findResendBlocker(pool, id, stored, files ?? []),
  ]);
  const applied = suppressions.filter((entry) => isSuppressedBy(entry, email));
  return (
    <Layout
      context={context}
      title={subjectText(email.subject)}
      crumbs={[{ path: PATH, name: 'Emails' }]}
      actions={
        mayChange && (
          <EmailButtons context={context} email={email} mayResend={resendBlocker === undefined} applied={applied} />
        )
      }
    >
      {mayChange && resendBlocker !== undefined && (
        <p class="hint" safe>
          {resendBlocker}
        </p>
      )}
      <Problem text={tooLateProblem(email.status, formState)} isWhole isAlert />
      <Live path={`${PATH}/${id}`} shouldRefresh={mayChangeSoon(email)}>
        {emailFacts(context, email, details)}
        {email.bounce_reason === null && <Problem text={email.error} id={RESPONSE_ID} isWhole />}
        <Remedy context={context} email={email} details={details} applied={applied} />
        <Timeline entries={details.timeline} above={email.error} />
        <Recipients email={email} details={details} suppressions={suppressions} maySuppress={mayChange} />
        <Attempts attempts={details.attempts} status={email.status} above={email.error} />
      </Live>
      <CustomHeaders headers={email.headers} />
      {mayChange && email.status === 'scheduled' && email.scheduled_at !== null && (
        <RescheduleForm context={context} path={`${PATH}/${id}`} at={email.scheduled_at} formState={formState} />
      )}
      {content.contentSection(email, stored, view)}
      {fileSection(context, id, files ?? [])}
    </Layout>
  );
}

function emailFacts(context: Context, email: Email, details: EmailDetails): Html {
  const { cc, bcc, reply_to: replyTo, batch_id: batchId } = email;
  const list = (name: string, addresses: readonly string[] | null): Fact =>
    addresses !== null && addresses.length > 0 && [name, <Text text={addresses.join(', ')} />];
  return (
    <Facts
      facts={[
        ['Status', <StatusBadge status={email.status} />],
        email.bounce_reason !== null && ['Bounce reason', <Text text={inWords(email.bounce_reason)} />],
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
        details.provider_message_id !== null && ['Provider message ID', <Id id={details.provider_message_id} />],
        ['ID', <Id id={email.id} />],
        ['Workflow', <Workflow context={context} id={details.workflow_id} />],
      ]}
    />
  );
}

/** Apart from the facts, whose names a header may have too. */
function CustomHeaders({ headers }: Pick<Email, 'headers'>): Html {
  const facts = Object.entries(headers).map(([name, value]): Fact => [name, <Text text={value} />, 'whole']);
  if (facts.length === 0) return '';
  return (
    <Section title="Custom headers">
      <Facts facts={facts} />
    </Section>
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

interface RecipientsProps {
  readonly email: Email;
  readonly details: EmailDetails;
  readonly suppressions: readonly Suppression[];
  readonly maySuppress: boolean;
}

/**
 * All recipients. A report about the only recipient is recorded on the email itself. A report about one of several implies for the
 * others only that the email was sent.
 */
function Recipients({ email, details, suppressions, maySuppress }: RecipientsProps): Html {
  const all = recipients(addressees(email));
  const onlyReport = all.length === 1 && isReported(email.status) ? email : undefined;
  const reports = new Map(details.recipients.map((report) => [report.recipient, report]));
  // The status of the email is that of one of its recipients. By SMTP, an open or click does not show of which one.
  const isStatusOfOne =
    ['opened', 'clicked'].includes(email.status) ||
    (isReported(email.status) && details.recipients.some(({ status }) => status === email.status));
  const statusWithoutReport = isStatusOfOne ? 'sent' : email.status;
  // Recipients who unsubscribed still receive email that is not marketing.
  const suppressed = new Set(suppressions.filter(({ origin }) => origin !== 'unsubscribe').map((entry) => entry.email));
  return (
    <Section title="Recipients">
      <Table
        layout="cards"
        caption="Recipients"
        columns={['Recipient', 'Status', 'Server response', ...(maySuppress ? [''] : [])]}
      >
        {all.map(({ address }) => {
          const report = onlyReport ?? reports.get(address.toLowerCase());
          return (
            <tr>
              <th scope="row" safe>
                {address}
              </th>
              <StatusCell status={report?.status ?? statusWithoutReport} />
              <td class="sub">
                {report?.bounce_reason != null && (
                  <Text text={`${inWords(report.bounce_reason)}${report.error === null ? '' : ': '}`} />
                )}
                {report?.error != null && <Response text={report.error} above={email.error} />}
              </td>
              {maySuppress && (
                <td>
                  {suppressed.has(address.toLowerCase()) ? (
                    <a href={`${SUPPRESSIONS}?email=${encodeURIComponent(address)}`}>Suppressed</a>
                  ) : (
                    <a
                      href={`${SUPPRESSIONS}/add?addresses=${encodeURIComponent(address)}`}
                      aria-label={`Suppress ${escapeHtml(address)}`}
                    >
                      Suppress
                    </a>
                  )}
                </td>
              )}
            </tr>
          );
        })}
      </Table>
    </Section>
  );
}

async function fileSection(context: Context, emailId: string, files: readonly ListedAttachment[]): Promise<Html> {
  if (files.length === 0) return '';
  const links = makeDownloadLinks(context.deps.secretKey);
  const expires = await secondsFromNow(context.pool, LINK_LIFE_SECONDS);
  return (
    <Section title="Attachments">
      <Table layout="cards" caption="Attachments" columns={['File', 'Type', ['Size', 'number'], 'Kept until']}>
        {files.map((file) => (
          <tr>
            <th scope="row">
              {file.kept ? (
                <a href={links.make([emailId, file.id], expires)} download="" safe>
                  {file.filename}
                </a>
              ) : (
                <span safe>{file.filename}</span>
              )}
              {file.inline && <span class="sub">shown inside the HTML</span>}
            </th>
            <td safe>{file.content_type}</td>
            <NumberCell text={sizeInWords(file.size)} />
            <td>{file.kept ? <Time at={file.expires_at} /> : <span class="muted">deleted</span>}</td>
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
