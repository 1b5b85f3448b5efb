import { Type } from 'typebox';
import type { EmailContent } from '../../domain/email/content.ts';
import { personalize } from '../../domain/email/marketing.ts';
import { formatMailbox, type OutgoingEmail, recipients, toCopy, toOutgoing } from '../../domain/email/outgoing.ts';
import { requireFound } from '../../domain/errors.ts';
import type { Email } from '../../store/emails/emails.ts';
import { findContent } from '../../store/emails/message-details.ts';
import { Section } from '../elements.tsx';
import { type Html, idOf, page, type PageRow, Reply } from '../page.ts';
import { PATH } from './emails.tsx';

export const VIEWS = ['html', 'text', 'source', 'headers'] as const;
type View = (typeof VIEWS)[number];
/** Widths of the preview in pixels: a mail client and a phone. */
export const WIDTHS = ['600', '375'] as const;
type Width = (typeof WIDTHS)[number];

const NAMES: Readonly<Record<View, string>> = { html: 'HTML', text: 'Text', source: 'HTML source', headers: 'Headers' };

/** The frame with an email's HTML must not run scripts, submit forms or follow links. */
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

export const rows: readonly PageRow[] = [['GET', `${PATH}/:id/html`, 'viewer', preview]];

interface Chosen {
  readonly show?: View;
  readonly width?: Width;
}

/** The content of an email, in the view and width of the query string. */
export function contentSection(email: Email, content: EmailContent | undefined, { show, width = '600' }: Chosen): Html {
  const html = content?.html || null;
  const text = content?.text || null;
  const isStored = html !== null || text !== null;
  const views = VIEWS.filter((view) => view === 'headers' || (view === 'text' ? text : html) !== null);
  const shown = show !== undefined && views.includes(show) ? show : (views[0] as View);
  return (
    <Section title="Content" id="content">
      {!isStored && <p class="muted">The content was erased, by request or because its retention ended.</p>}
      {isStored && views.length > 1 && (
        <nav class="tabs" aria-label="Content">
          {views.map((view) => (
            <a
              href={`${PATH}/${email.id}?show=${view}#content`}
              aria-current={view === shown ? 'true' : undefined}
              safe
            >
              {NAMES[view]}
            </a>
          ))}
        </nav>
      )}
      {isStored && shown === 'html' && <Preview id={email.id} width={width} />}
      {isStored && shown === 'headers' && <Headers email={email} />}
      {isStored && (shown === 'text' || shown === 'source') && (
        <pre class="preview" tabindex="0" safe>
          {(shown === 'text' ? text : html) ?? ''}
        </pre>
      )}
    </Section>
  );
}

function Preview({ id, width }: { id: string; width: Width }): Html {
  return (
    <>
      <nav class="tabs small" aria-label="Width">
        {WIDTHS.map((each) => (
          <a href={`${PATH}/${id}?show=html&width=${each}#content`} aria-current={each === width ? 'true' : undefined}>
            {each === '600' ? 'Desktop, 600 px' : 'Phone, 375 px'}
          </a>
        ))}
      </nav>
      <iframe
        class={['preview', `width-${width}`]}
        src={`${PATH}/${id}/html`}
        title="The email as HTML"
        sandbox=""
        loading="lazy"
      />
      <p class="hint">Shown without scripts, links and embedded files. Images from the web load as for a recipient.</p>
    </>
  );
}

function Headers({ email }: { email: Email }): Html {
  const message = firstMessageOf(email);
  const description =
    message.copy === null
      ? 'As Sendwright sets them.'
      : 'Of the copy for the first recipient. Each copy has its own To, Message-ID and unsubscribe link.';
  return (
    <>
      <pre class="preview" tabindex="0" safe>
        {headersOf(message)}
      </pre>
      <p class="hint">
        {description} Others, such as Date and DKIM-Signature, are added when it is sent: by SMTP by Sendwright,
        otherwise by the provider.
      </p>
    </>
  );
}

/** Shown instead of the unsubscribe link, which works without signing in. */
const UNSUBSCRIBE_LINK = '{{{unsubscribe_url}}}';

/** Returns the email without its bodies, or its copy for the first recipient, as it is delivered. */
function firstMessageOf(email: Email): OutgoingEmail {
  const outgoing = toOutgoing(email, { html: null, text: null, headers: email.headers });
  if (!email.marketing) return outgoing;
  const isCopied = recipients(outgoing).length > 1;
  return personalize(isCopied ? toCopy(outgoing, 0) : outgoing, UNSUBSCRIBE_LINK);
}

/** Returns the headers that Sendwright sets, one per line. Bcc recipients are in no header. */
function headersOf({ from, to, cc, replyTo, subject, messageId, headers }: OutgoingEmail): string {
  const list = (name: string, mailboxes: OutgoingEmail['to']): readonly [string, string][] =>
    mailboxes.length === 0 ? [] : [[name, mailboxes.map(formatMailbox).join(', ')]];
  const lines = [
    ...list('From', [from]),
    ...list('To', to),
    ...list('Cc', cc),
    ...list('Reply-To', replyTo),
    ['Subject', subject] as const,
    ['Message-ID', messageId] as const,
    ...headers,
  ];
  return lines.map(([name, value]) => `${name}: ${value}`).join('\n');
}
