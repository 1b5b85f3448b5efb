import { BOUNCE_REASONS_IN_WORDS } from '../../domain/bounces/reasons.ts';
import type { BounceReason } from '../../domain/email/email.ts';
import { addressees, recipients } from '../../domain/email/outgoing.ts';
import type { SuppressionOrigin } from '../../domain/email/suppression.ts';
import type { Email } from '../../store/emails/emails.ts';
import type { EmailDetails } from '../../store/emails/message-details.ts';
import { findSuppressions, type Suppression } from '../../store/suppressions/suppressions.ts';
import { inWords, Text, Time } from '../elements.tsx';
import type { Context, Html } from '../page.ts';
import { RESPONSE_ID } from './message-parts.tsx';
import { PATH as SUPPRESSIONS, removeButton } from './suppressions.tsx';

/** Maximum number of entries shown; an email has up to 150 recipients. */
const MAX_SHOWN = 10;

/** The reason for an entry of the suppression list, as a clause after "because". */
export const ORIGINS: Readonly<Record<SuppressionOrigin, string>> = {
  bounce: 'email to it bounced',
  complaint: 'the recipient marked an email as spam',
  unsubscribe: 'the recipient unsubscribed from marketing email',
  manual: 'it was added in the dashboard, by the API or by the operator',
  provider: 'it is on the suppression list of the provider',
};

/** Returns the entries of the suppression list of an email's recipients, whether they concern it or not. */
export function suppressionsOf({ pool, organization }: Context, email: Email): Promise<Suppression[]> {
  const addresses = recipients(addressees(email)).map(({ address }) => address.toLowerCase());
  return findSuppressions(pool, organization.id, addresses);
}

/** Why an email bounced or was not sent, what to do, and which of its recipients are suppressed now. */
export function Remedy({ context, email, details, applied }: RemedyProps): Html {
  const hadSuppressed = details.recipients.some(({ status }) => status === 'suppressed');
  const { bounce_reason: reason, status, error } = email;
  if (reason === null && status !== 'suppressed' && !hadSuppressed && applied.length === 0) return '';
  return (
    <div class="notice warning remedy">
      {reason !== null && <Advice reason={reason} />}
      {reason !== null && error !== null && (
        <p id={RESPONSE_ID}>
          <code safe>{error}</code>
        </p>
      )}
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
        <Entry context={context} entry={entry} of={email.id} />
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
  /** The entries of the suppression list that concern this email. */
  readonly applied: readonly Suppression[];
}

/** @param of the id of the email whose page it is */
function Entry({ context, entry, of }: { context: Context; entry: Suppression; of: string }): Html {
  const { id, email, origin, email_id: causeId, created_at: since } = entry;
  const isByThis = causeId === of;
  return (
    <div class="row">
      <span>
        <strong safe>{email}</strong> has been on your suppression list since <Time at={since} />
        <Text text={isByThis ? ' because of this email.' : `, because ${ORIGINS[origin]}.`} />
      </span>
      <a href={`${SUPPRESSIONS}?email=${encodeURIComponent(email)}`}>Entry on the suppression list</a>
      {causeId !== null && !isByThis && <a href={`/dashboard/emails/${causeId}`}>Email that caused it</a>}
      {context.role !== 'viewer' && removeButton(context, id, email, `/dashboard/emails/${of}`)}
    </div>
  );
}
