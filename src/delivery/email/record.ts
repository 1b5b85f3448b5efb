import type { EmailStatus } from '../../domain/email/email.ts';
import { maskAddresses } from '../../lib/mask.ts';
import { envelopeOf, isPart, type OutgoingEmail } from '../../domain/email/outgoing.ts';
import type { NamedRecipients, RefusedRecipient, SendOutcome } from '../../domain/email/retry.ts';
import { project } from '../../projection/emails.ts';
import {
  type Attempt,
  type AttemptChanges,
  type AttemptEnding,
  clearChanges,
  lockStatuses,
} from '../../store/emails/attempts.ts';
import type { EmailChangeInput } from '../../store/emails/changes.ts';
import { type CopyEnding, divideEmails, endCopies } from '../../store/emails/recipients.ts';
import { type Pool, transaction } from '../../store/postgres/pool.ts';
import { ATTEMPT_OUTCOMES, retryResult } from '../call.ts';
import type { CallResult } from '../contract.ts';
import type { EmailDeps, EmailOutcomes } from './contract.ts';
import { endCopied, SENT_IN_PARTS } from './copies.ts';
import { resultKey } from '../reconcile.ts';

/** The outcome of several copies is the first of these that occurs. */
const OUTCOME_PRECEDENCE: readonly SendOutcome['kind'][] = [
  'unknown',
  'account',
  'busy',
  'postponed',
  'sent',
  'bounced',
  'rejected',
];

/** The combined outcome of the copies of an email. */
export function outcomeOf(outcomes: EmailOutcomes['outcomes']): SendOutcome {
  const rank = ({ kind }: SendOutcome) => OUTCOME_PRECEDENCE.indexOf(kind);
  return outcomes.reduce((first, next) => (rank(next) < rank(first) ? next : first));
}

/**
 * Returns the final outcome of some copies or recipients if the provider refused the others only for now. The attempt is recorded with
 * it, which resets `Attempt.failures` for the others.
 */
function finalOutcomeOfPart(outcomes: EmailOutcomes['outcomes']): SendOutcome['kind'] | undefined {
  const outcome = outcomeOf(outcomes);
  if (outcome.kind !== 'busy' && outcome.kind !== 'postponed') return hasDeferred(outcome) ? outcome.kind : undefined;
  const final = (['sent', 'bounced', 'rejected'] as const).find((final) => outcomes.some(({ kind }) => kind === final));
  return final ?? (namedOf(outcome).refused ? 'bounced' : undefined);
}

function namedOf(outcome: SendOutcome): NamedRecipients {
  return outcome.kind === 'account' || outcome.kind === 'postponed' ? {} : outcome;
}

/** Returns true for a final outcome that does not concern all recipients, since others were deferred. */
function hasDeferred(outcome: SendOutcome): boolean {
  return ['sent', 'bounced', 'rejected'].includes(outcome.kind) && namedOf(outcome).deferred !== undefined;
}

/** The changes that a provider's answer makes to one email, with its attempt. */
export interface AnswerChanges {
  readonly attempt: Pick<Attempt, 'message_id' | 'n'>;
  readonly changes: AttemptChanges;
  /** True if the changes are recorded with the attempt until they are applied. */
  readonly areStored: boolean;
  /** True for a marketing email that is sent in copies, and for an email with deferred recipients. */
  readonly isCopied: boolean;
}

/** The recorded end of an attempt. It contains everything needed to apply the provider's answer later. */
export function endingOf(entry: EmailOutcomes): AttemptEnding {
  const outcome = outcomeOf(entry.outcomes);
  const { id, n } = entry.email;
  const { changes, areStored } = toChanges(entry);
  return {
    message_id: id,
    n,
    outcome: ATTEMPT_OUTCOMES[finalOutcomeOfPart(entry.outcomes) ?? outcome.kind],
    detail: 'detail' in outcome ? outcome.detail : deferralDetail(entry),
    ...(outcome.kind === 'sent' && !isCopied(entry) && { provider_message_id: outcome.messageId }),
    ...(areStored && { changes }),
  };
}

/** States how many recipients an accepted email was deferred for, and the first answer about one; null for none. */
function deferralDetail({ email, outcomes }: EmailOutcomes): string | null {
  const [first, ...others] = outcomes.flatMap((outcome) => namedOf(outcome).deferred ?? []);
  if (!first) return null;
  const total = email.copies.reduce((sum, copy) => sum + envelopeOf(copy).length, 0);
  return `Deferred for ${others.length + 1} of ${total} recipients. ${first.detail}`;
}

/** Applies the recorded answers of a call. @returns the results in the order of the emails */
export async function applyOutcomes(deps: EmailDeps, emails: readonly EmailOutcomes[]): Promise<CallResult[]> {
  const statuses = await applyAnswers(deps.pool, emails.map(toChanges));
  return emails.map((entry) => toResult(deps, entry, statuses));
}

/** Applies answers to their emails. Idempotent. @returns the final statuses of emails that are sent in copies */
export async function applyAnswers(pool: Pool, answers: readonly AnswerChanges[]): Promise<Map<string, EmailStatus>> {
  const stored = answers.filter(({ areStored }) => areStored);
  const all = (change: keyof Omit<AttemptChanges, 'copies'>) => answers.flatMap(({ changes }) => changes[change] ?? []);
  // The common case: an email has no copies and one change, and `project` opens a transaction of its own for each kind of change.
  if (stored.length === 0) {
    for (const change of ['sent', 'rejected'] as const) await project(pool, change, all(change));
    return new Map();
  }
  const copiedIds = answers.flatMap(({ attempt, isCopied }) => (isCopied ? attempt.message_id : []));
  return transaction(pool, async (client) => {
    // Locks all emails before their copies, in the order in which reports lock them, to prevent deadlocks. Each change below locks
    // only its own emails.
    await lockStatuses(
      client,
      answers.map(({ attempt }) => attempt.message_id),
    );
    await clearChanges(
      client,
      stored.map(({ attempt }) => attempt),
    );
    const endings = answers.flatMap(({ changes }) => changes.copies);
    await divideEmails(client, endings);
    await endCopies(client, endings);
    for (const change of ['sent', 'bounced', 'rejected', 'delivery_delayed_for_one'] as const)
      await project(client, change, all(change));
    return endCopied(client, copiedIds);
  });
}

function toChanges(entry: EmailOutcomes): AnswerChanges {
  const { id: message_id, n } = entry.email;
  const changes = {
    copies: copyEndings(entry),
    sent: changesOf(entry, 'sent'),
    bounced: changesOf(entry, 'bounced'),
    rejected: changesOf(entry, 'rejected'),
    delivery_delayed_for_one: delays(entry),
  };
  const areStored = changes.copies.length > 0 || changes.bounced.length > 0;
  return { attempt: { message_id, n }, changes, areStored, isCopied: isCopied(entry) };
}

/** Returns true if copies or recipients of an email have ends of their own. */
function isCopied(entry: EmailOutcomes): boolean {
  return eachCopy(entry).some(({ copy, outcome }) => isPart(copy) || divides(outcome));
}

/** Returns true if an outcome is that of some recipients, while others are still to get the email. */
function divides(outcome: SendOutcome): boolean {
  const { refused, deferred } = namedOf(outcome);
  if (outcome.kind === 'busy') return refused !== undefined;
  return deferred !== undefined || (outcome.kind === 'unknown' && refused !== undefined);
}

function eachCopy({ email, outcomes }: EmailOutcomes): { copy: OutgoingEmail; outcome: SendOutcome }[] {
  return email.copies.map((copy, index) => ({ copy, outcome: outcomes[index] as SendOutcome }));
}

/** The ends of copies, and of recipients of an email with deferred ones. Bounces are recorded by the projection. */
function copyEndings(entry: EmailOutcomes): CopyEnding[] {
  if (!isCopied(entry)) return [];
  const { call } = entry.email;
  return eachCopy(entry).flatMap(({ copy, outcome }) => {
    const deferrals = new Map(namedOf(outcome).deferred?.map((each) => [each.recipient.toLowerCase(), each.detail]));
    const bounced = new Set(refusedRecipients(copy, outcome).map(({ recipient }) => recipient.toLowerCase()));
    return envelopeOf(copy).flatMap(({ address }): CopyEnding[] => {
      const recipient = address.toLowerCase();
      if (bounced.has(recipient)) return [];
      const ending = endingOfRecipient(copy, outcome, deferrals.get(recipient));
      return ending ? [{ email_id: copy.id, recipient, call, ...ending }] : [];
    });
  });
}

/** @param deferral the answer about this recipient alone */
function endingOfRecipient(
  { copy }: OutgoingEmail,
  outcome: SendOutcome,
  deferral: string | undefined,
): Omit<CopyEnding, 'email_id' | 'recipient'> | undefined {
  const open = { status: 'queued', provider_message_id: null } as const;
  if (deferral !== undefined) return { ...open, error: deferral };
  if (outcome.kind === 'sent') return { status: 'sent', error: null, provider_message_id: outcome.messageId };
  if (outcome.kind === 'rejected') return { status: 'rejected', error: outcome.detail, provider_message_id: null };
  // Copies of marketing email that are not sent yet keep their state.
  if (copy !== null) return undefined;
  if (outcome.kind === 'busy') return { ...open, error: outcome.detail };
  return outcome.kind === 'unknown' ? { ...open, error: null } : undefined;
}

/** A deferral is shown once for each recipient, unless the next call follows immediately. */
function delays(entry: EmailOutcomes): EmailChangeInput[] {
  const { id, provider } = entry.email;
  if (!isCopied(entry)) return [];
  const deferred = entry.outcomes.flatMap((outcome) => namedOf(outcome).deferred ?? []);
  return deferred.flatMap(({ recipient: address, detail: error, isOverLimit }): EmailChangeInput[] => {
    const recipient = address.toLowerCase();
    return isOverLimit ? [] : [{ id, provider: provider.name, recipient, error, dedupe_key: `deferred ${recipient}` }];
  });
}

/** The changes of one type: one for the whole email, or for bounces one per refused recipient. */
function changesOf(entry: EmailOutcomes, change: 'sent' | 'bounced' | 'rejected'): EmailChangeInput[] {
  const { id, provider } = entry.email;
  if (change === 'bounced') return eachCopy(entry).flatMap(({ copy, outcome }) => bounces(entry, copy, outcome));
  const [outcome] = entry.outcomes;
  const isDivided = isCopied(entry);
  // Of an email in parts, its end is recorded with the last one. What the first recipients got is known before that.
  const isFirstPart = isDivided && change === 'sent' && entry.email.copies[0]?.copy === null;
  if ((isDivided && !isFirstPart) || outcome.kind !== change) return [];
  const dedupe_key = isDivided ? SENT_IN_PARTS : resultKey(change, entry.email);
  const common = { id, provider: provider.name, dedupe_key };
  if (outcome.kind !== 'sent') return [{ ...common, error: outcome.detail }];
  const { messageId: provider_message_id, acceptedAt: occurred_at } = outcome;
  return [Object.assign(common, { provider_message_id }, occurred_at !== undefined && { occurred_at })];
}

function bounces({ email }: EmailOutcomes, copy: OutgoingEmail, outcome: SendOutcome): EmailChangeInput[] {
  return refusedRecipients(copy, outcome).map(({ recipient, reason, detail }) => ({
    id: email.id,
    provider: email.provider.name,
    recipient: recipient.toLowerCase(),
    error: detail,
    bounce_reason: reason,
    dedupe_key: `${resultKey('bounced', email)} ${recipient.toLowerCase()}`,
  }));
}

/** The recipients that the provider refused: those it named, and all others that it did not defer if it bounced the copy. */
function refusedRecipients(copy: OutgoingEmail, outcome: SendOutcome): readonly RefusedRecipient[] {
  const { refused: named = [], deferred = [] } = namedOf(outcome);
  if (outcome.kind !== 'bounced') return named;
  const isNamed = new Set([...named, ...deferred].map(({ recipient }) => recipient.toLowerCase()));
  const others = envelopeOf(copy).filter(({ address }) => !isNamed.has(address.toLowerCase()));
  const { reason, detail } = outcome;
  return [...named, ...others.map(({ address }) => ({ recipient: address, reason, detail }))];
}

function toResult(deps: EmailDeps, entry: EmailOutcomes, statuses: ReadonlyMap<string, EmailStatus>): CallResult {
  const { id, provider } = entry.email;
  const outcome = outcomeOf(entry.outcomes);
  if (outcome.kind === 'postponed') return retryResult(deps, entry.email, outcome);
  if (outcome.kind === 'busy' && outcome.isOverLimit) return { id, state: 'partial' };
  const isPartFinal = finalOutcomeOfPart(entry.outcomes) !== undefined;
  const deferred = namedOf(outcome).deferred ?? [];
  // `endCopied` leaves an email open while copies of it are still to be sent.
  const isOpen = isCopied(entry) && !statuses.has(id);
  if (isPartFinal && isOpen && deferred.some(({ isOverLimit }) => isOverLimit)) return { id, state: 'partial' };
  if (outcome.kind === 'busy' || outcome.kind === 'account' || outcome.kind === 'unknown') {
    const isAlone = outcome.kind === 'busy' && outcome.alone && { alone: true };
    const result = retryResult(deps, entry.email, { ...outcome, detail: maskAddresses(outcome.detail) });
    return { ...result, ...isAlone, ...(isPartFinal && { failures: 0 }) };
  }
  // Others have got it, so its group has no reason to wait for it.
  const [first] = deferred;
  if (isOpen && first) return { id, state: 'again', reason: maskAddresses(first.detail), alone: true, failures: 0 };
  if (isOpen) return { id, state: 'partial' };
  return { id, state: 'ended', status: statuses.get(id) ?? outcome.kind, provider: provider.name };
}
