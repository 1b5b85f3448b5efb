import type { EmailStatus } from '../../domain/email/email.ts';
import { maskAddresses } from '../../lib/mask.ts';
import { type OutgoingEmail, recipients } from '../../domain/email/outgoing.ts';
import type { RefusedRecipient, SendOutcome } from '../../domain/email/retry.ts';
import { project } from '../../projection/emails.ts';
import {
  type Attempt,
  type AttemptChanges,
  type AttemptEnding,
  clearChanges,
  lockStatuses,
} from '../../store/emails/attempts.ts';
import type { EmailChangeInput } from '../../store/emails/changes.ts';
import { type CopyEnding, endCopies } from '../../store/emails/recipients.ts';
import { type Pool, transaction } from '../../store/postgres/pool.ts';
import { ATTEMPT_OUTCOMES, retryResult } from '../call.ts';
import type { CallResult } from '../contract.ts';
import type { EmailDeps, EmailOutcomes } from './contract.ts';
import { endCopied } from './copies.ts';
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
 * Returns the final outcome of some copies if the others are to be tried again. The attempt is recorded with it, which
 * resets `Attempt.failures` for the others.
 */
function finalOutcomeOfPart(outcomes: EmailOutcomes['outcomes']): SendOutcome['kind'] | undefined {
  const { kind } = outcomeOf(outcomes);
  if (kind !== 'busy' && kind !== 'postponed') return undefined;
  return (['sent', 'bounced', 'rejected'] as const).find((final) => outcomes.some(({ kind }) => kind === final));
}

/** The changes that a provider's answer makes to one email, with its attempt. */
export interface AnswerChanges {
  readonly attempt: Pick<Attempt, 'message_id' | 'n'>;
  readonly changes: AttemptChanges;
  /** True if the changes are recorded with the attempt until they are applied. */
  readonly areStored: boolean;
  /** True for a marketing email that is sent in copies. */
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
    detail: 'detail' in outcome ? outcome.detail : null,
    ...(outcome.kind === 'sent' && !isCopied(entry) && { provider_message_id: outcome.messageId }),
    ...(areStored && { changes }),
  };
}

/** Applies the recorded answers of a call. @returns the results in the order of the emails */
export async function applyOutcomes(deps: EmailDeps, emails: readonly EmailOutcomes[]): Promise<CallResult[]> {
  const statuses = await applyAnswers(deps.pool, emails.map(toChanges));
  return emails.map((entry) => toResult(deps, entry, statuses));
}

/** Applies answers to their emails. Idempotent. @returns the final statuses of emails that are sent in copies */
export async function applyAnswers(pool: Pool, answers: readonly AnswerChanges[]): Promise<Map<string, EmailStatus>> {
  const stored = answers.filter(({ areStored }) => areStored);
  const all = (change: 'sent' | 'bounced' | 'rejected') => answers.flatMap(({ changes }) => changes[change]);
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
    await endCopies(
      client,
      answers.flatMap(({ changes }) => changes.copies),
    );
    for (const change of ['sent', 'bounced', 'rejected'] as const) await project(client, change, all(change));
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
  };
  const areStored = changes.copies.length > 0 || changes.bounced.length > 0;
  return { attempt: { message_id, n }, changes, areStored, isCopied: isCopied(entry) };
}

function isCopied({ email }: EmailOutcomes): boolean {
  return email.copies.some(({ copy }) => copy !== null);
}

function eachCopy({ email, outcomes }: EmailOutcomes): { copy: OutgoingEmail; outcome: SendOutcome }[] {
  return email.copies.map((copy, index) => ({ copy, outcome: outcomes[index] as SendOutcome }));
}

/** The copies that were sent or rejected. Bounced copies are recorded by the projection. */
function copyEndings(entry: EmailOutcomes): CopyEnding[] {
  if (!isCopied(entry)) return [];
  return eachCopy(entry).flatMap(({ copy, outcome }): CopyEnding[] => {
    if (outcome.kind !== 'sent' && outcome.kind !== 'rejected') return [];
    const ending =
      outcome.kind === 'sent'
        ? { status: outcome.kind, error: null, provider_message_id: outcome.messageId }
        : { status: outcome.kind, error: outcome.detail, provider_message_id: null };
    return recipients(copy).map(({ address }) => ({ email_id: copy.id, recipient: address.toLowerCase(), ...ending }));
  });
}

/** The changes of one type: one for the whole email, or for bounces one per refused recipient. */
function changesOf(entry: EmailOutcomes, change: 'sent' | 'bounced' | 'rejected'): EmailChangeInput[] {
  const { id, provider } = entry.email;
  if (change === 'bounced') return eachCopy(entry).flatMap(({ copy, outcome }) => bounces(entry, copy, outcome));
  const [outcome] = entry.outcomes;
  if (isCopied(entry) || outcome.kind !== change) return [];
  const common = { id, provider: provider.name, dedupe_key: resultKey(change, entry.email) };
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

/** The recipients that the provider refused: those it named, and all recipients if it bounced the whole copy. */
function refusedRecipients(copy: OutgoingEmail, outcome: SendOutcome): readonly RefusedRecipient[] {
  if (outcome.kind !== 'sent' && outcome.kind !== 'bounced') return [];
  const named = outcome.refused ?? [];
  if (outcome.kind === 'sent') return named;
  const isNamed = new Set(named.map(({ recipient }) => recipient.toLowerCase()));
  const others = recipients(copy).filter(({ address }) => !isNamed.has(address.toLowerCase()));
  const { reason, detail } = outcome;
  return [...named, ...others.map(({ address }) => ({ recipient: address, reason, detail }))];
}

function toResult(deps: EmailDeps, entry: EmailOutcomes, statuses: ReadonlyMap<string, EmailStatus>): CallResult {
  const { id, provider } = entry.email;
  const outcome = outcomeOf(entry.outcomes);
  if (outcome.kind === 'postponed') return retryResult(deps, entry.email, outcome);
  if (outcome.kind === 'busy' || outcome.kind === 'account' || outcome.kind === 'unknown') {
    const isAlone = outcome.kind === 'busy' && outcome.alone && { alone: true };
    const result = retryResult(deps, entry.email, { ...outcome, detail: maskAddresses(outcome.detail) });
    return { ...result, ...isAlone, ...(finalOutcomeOfPart(entry.outcomes) !== undefined && { failures: 0 }) };
  }
  // `endCopied` leaves an email open while copies of it are still to be sent.
  if (isCopied(entry) && !statuses.has(id)) return { id, state: 'partial' };
  return { id, state: 'ended', status: statuses.get(id) ?? outcome.kind, provider: provider.name };
}
