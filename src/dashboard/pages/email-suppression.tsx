import { BOUNCE_REASONS_IN_WORDS } from '../../domain/bounces/reasons.ts';
import type { BounceReason } from '../../domain/email/email.ts';
import type { SuppressionOrigin } from '../../domain/email/suppression.ts';
import type { Email } from '../../store/emails/emails.ts';
import type { EmailDetails } from '../../store/emails/message-details.ts';
import type { Suppression } from '../../store/suppressions/suppressions.ts';
import { inWords, Text, Time } from '../elements.tsx';
import type { Context, Html } from '../page.ts';
import { PATH as SUPPRESSIONS, removeButton } from './suppressions.tsx';

/** Maximum number of entries shown; an email has up to 150 recipients. */
const MAX_SHOWN = 10;

/** The reason for an entry of the suppression list, as a clause after "because". */
const ORIGINS: Readonly<Record<SuppressionOrigin, string>> = {
  bounce: 'email to it bounced',
  complaint: 'the recipient marked an email as spam',
  unsubscribe: 'the recipient unsubscribed from marketing email',
  manual: 'it was added in the dashboard, by the API or by the operator',
  provider: 'it is on the suppression list of the provider',
};

/** Why an email bounced or was not sent, what to do, and which of its recipients are suppressed now. */
export function Remedy({ context, email, details, suppressions }: RemedyProps): Html {
  const applied = suppressions.filter(({ origin }) => origin !== 'unsubscribe' || email.marketing);
  const hadSuppressed = details.recipients.some(({ status }) => status === 'suppressed');
  const { bounce_reason: reason, status } = email;
  if (reason === null && status !== 'suppressed' && !hadSuppressed && applied.length === 0) return '';
  return (
    <div class="notice warning remedy">
      {reason !== null && <Advice reason={reason} />}
      {status === 'suppressed' && (
        <p>Not sent: every address in To was on your suppression list when the email was due.</p>
      )}
      {hadSuppressed && status !== 'suppressed' && (
        <p>Sent without the recipients that were on your suppression list.</p>
      )}
      {(hadSuppressed || status === 'suppressed') && applied.length === 0 && (
        <p>None of the recipients is on the list now.</p>
      )}
      {applied.slice(0, MAX_SHOWN).map((entry) => (
        <Entry context={context} entry={entry} isByThis={entry.email_id === email.id} />
      ))}
      {applied.length > MAX_SHOWN && (
        <p safe>{`${applied.length} recipients are on your suppression list. These are the first ${MAX_SHOWN}.`}</p>
      )}
    </div>
  );
}

function Advice({ reason }: { reason: BounceReason }): Html {
  const { meaning, remedy } = BOUNCE_REASONS_IN_WORDS[reason];
  return (
    <p>
      <strong safe>{inWords(reason)}</strong>
      <Text text={` means: ${meaning}. What to do: ${remedy}.`} />
    </p>
  );
}

interface RemedyProps {
  readonly context: Context;
  readonly email: Email;
  readonly details: EmailDetails;
  /** The suppressed recipients of the email. */
  readonly suppressions: readonly Suppression[];
}

function Entry({ context, entry, isByThis }: { context: Context; entry: Suppression; isByThis: boolean }): Html {
  const { id, email, origin, email_id: causeId, created_at: since } = entry;
  return (
    <div class="row">
      <span>
        <strong safe>{email}</strong> has been on your suppression list since <Time at={since} />
        <Text text={isByThis ? ' because of this email.' : `, because ${ORIGINS[origin]}.`} />
      </span>
      <a href={`${SUPPRESSIONS}?email=${encodeURIComponent(email)}`}>View</a>
      {causeId !== null && !isByThis && <a href={`/dashboard/emails/${causeId}`}>View the email</a>}
      {context.role !== 'viewer' && removeButton(context, id, email)}
    </div>
  );
}
