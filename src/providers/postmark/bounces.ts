import { statedReason } from '../../domain/bounces/bounces.ts';
import type { BounceReason } from '../../domain/email/email.ts';
import { SUPPRESSING } from '../../domain/email/suppression.ts';
import type { Feedback } from '../../domain/email/feedback.ts';
import { storableText } from '../../lib/text.ts';

export interface Bounce {
  readonly type: string;
  /** The reply of the recipient's server, usually with the prefix `smtp;`; empty without a reply. */
  readonly details: string;
  /** Postmark's description of bounces of this type. */
  readonly description: string;
  /** True if Postmark refuses further messages to the address; undefined if the record does not state it. */
  readonly isInactive: boolean | undefined;
}

type BounceMeaning = Pick<Feedback, 'change' | 'error' | 'bounceReason'>;

/**
 * The meaning of a type (https://postmarkapp.com/developer/api/bounce-api#bounce-types). The server's reply takes
 * precedence; `fallback` is the reason if the reply is not classified.
 */
type Meaning =
  /** Refused permanently. With `isCertain`, the type precedes the server's reply. */
  | {
      readonly kind: 'bounced';
      readonly fallback: BounceReason;
      readonly detail: string;
      readonly isCertain?: true;
    }
  /** Refused permanently by Postmark itself, independent of a server's reply. */
  | { readonly kind: 'postmark_refused'; readonly reason: BounceReason; readonly detail: string }
  | UncertainBounce
  | { readonly kind: 'delivery_delayed' | 'complained' | 'unsubscribed' };

/** A bounce that is final only if Postmark has deactivated the address, or the server's reply shows it. */
interface UncertainBounce {
  readonly kind: 'uncertain';
  readonly fallback: BounceReason;
  readonly detail: string;
  /** True if a reply with a known reason makes it final, because Postmark does not retry. */
  readonly isFinalByReply: boolean;
  /** The change if it is not final; undefined if that is unknown. */
  readonly changeIfNotFinal?: 'delivery_delayed';
}

const REFUSED_DETAIL = "The recipient's server refused it";
const UNREACHABLE_DETAIL = "The mail server of the recipient's domain cannot be found or reached";
const SUPPRESSED_DETAIL = 'Postmark no longer sends to this address';

/** Unlisted types change nothing: automatic replies, confirmations and inbound mail. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  HardBounce: { kind: 'bounced', fallback: 'mailbox_not_found', detail: REFUSED_DETAIL },
  BadEmailAddress: { kind: 'bounced', fallback: 'mailbox_not_found', detail: REFUSED_DETAIL },
  SpamNotification: { kind: 'bounced', fallback: 'spam_block', detail: REFUSED_DETAIL },
  Blocked: { kind: 'bounced', fallback: 'reputation_block', detail: REFUSED_DETAIL },
  VirusNotification: { kind: 'bounced', fallback: 'content_rejected', detail: REFUSED_DETAIL },
  DMARCPolicy: { kind: 'bounced', fallback: 'authentication_failure', detail: REFUSED_DETAIL, isCertain: true },
  ManuallyDeactivated: { kind: 'postmark_refused', reason: 'provider_suppressed', detail: SUPPRESSED_DETAIL },
  SMTPApiError: { kind: 'postmark_refused', reason: 'provider_suppressed', detail: SUPPRESSED_DETAIL },
  DnsError: {
    kind: 'uncertain',
    fallback: 'dns_failure',
    detail: UNREACHABLE_DETAIL,
    isFinalByReply: false,
    changeIfNotFinal: 'delivery_delayed',
  },
  SoftBounce: {
    kind: 'uncertain',
    fallback: 'unknown',
    detail: REFUSED_DETAIL,
    isFinalByReply: true,
    changeIfNotFinal: 'delivery_delayed',
  },
  Unknown: { kind: 'uncertain', fallback: 'unknown', detail: REFUSED_DETAIL, isFinalByReply: false },
  Transient: { kind: 'delivery_delayed' },
  SpamComplaint: { kind: 'complained' },
  Unsubscribe: { kind: 'unsubscribed' },
};

/** Returns the change that a bounce causes for its recipient; undefined if it causes none. */
export function meaningOf(bounce: Bounce): BounceMeaning | undefined {
  const meaning = Object.hasOwn(MEANINGS, bounce.type) ? MEANINGS[bounce.type] : undefined;
  if (!meaning) return undefined;
  switch (meaning.kind) {
    case 'delivery_delayed':
    case 'complained':
    case 'unsubscribed':
      return { change: meaning.kind };
    case 'postmark_refused':
      return toBounce(meaning.reason, meaning.detail, bounce);
    case 'bounced':
      return toBounce(reasonOf(meaning, bounce), meaning.detail, bounce);
    case 'uncertain':
      return endOrDelay(meaning, bounce);
  }
}

function endOrDelay(meaning: UncertainBounce, bounce: Bounce): BounceMeaning | undefined {
  const { detail, isFinalByReply, changeIfNotFinal } = meaning;
  const isFinal = bounce.isInactive === true || (isFinalByReply && statedReason(bounce.details) !== undefined);
  if (isFinal) return toBounce(reasonOf(meaning, bounce), detail, bounce);
  return changeIfNotFinal && { change: changeIfNotFinal };
}

/**
 * The reason in the server's reply, otherwise that of the type. An address that Postmark keeps active is not suppressed here
 * either: the type's reason replaces one that would, or `reputation_block` if the type's would too.
 */
function reasonOf(
  { fallback, isCertain = false }: { readonly fallback: BounceReason; readonly isCertain?: boolean },
  { details, isInactive }: Bounce,
): BounceReason {
  const reason = (isCertain ? undefined : statedReason(details)) ?? fallback;
  if (isInactive !== false || !SUPPRESSING[reason]) return reason;
  return SUPPRESSING[fallback] ? 'reputation_block' : fallback;
}

function toBounce(bounceReason: BounceReason, detail: string, { details, description }: Bounce): BounceMeaning {
  // Removes the name of the protocol (RFC 3464 §2.3.6).
  const words = storableText(details.trim().replace(/^smtp;\s*/i, '')) || storableText(description.trim());
  return { change: 'bounced', bounceReason, error: words === '' ? `${detail}.` : `${detail}: ${words}` };
}
