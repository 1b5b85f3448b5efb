import type { EmailStatus } from '../../domain/email/email.ts';
import { type Attempt, type AttemptChanges, hasFinalOutcome, NO_CHANGES } from '../../store/emails/attempts.ts';
import { maskAddresses } from '../../lib/mask.ts';
import { retryResult } from '../call.ts';
import type { CallResult } from '../contract.ts';
import { resultKey } from '../reconcile.ts';
import type { AttemptedEmail, EmailDeps } from './contract.ts';
import { type AnswerChanges, applyAnswers } from './record.ts';

/** Applies recorded answers without another provider call. */
export async function applyRecorded(deps: EmailDeps, emails: readonly AttemptedEmail[]): Promise<CallResult[]> {
  const answers = emails.map(toAnswer);
  const statuses = await applyAnswers(deps.pool, answers);
  deps.log.info({ emails: emails.length }, 'recorded answers applied');
  return emails.map(({ attempt }, index) => toResult(deps, attempt, answers[index] as AnswerChanges, statuses));
}

function toAnswer({ attempt, hasCopiesLeft }: AttemptedEmail): AnswerChanges {
  const { changes } = attempt;
  // Reports may have ended all copies before the answer is applied: then only its changes show that the email has copies.
  const isCopied = hasCopiesLeft || (changes?.copies ?? []).length > 0;
  return { attempt, changes: changes ?? changesOf(attempt), areStored: changes !== null, isCopied };
}

function changesOf(attempt: Attempt): AttemptChanges {
  const { message_id: id, provider, outcome, detail, provider_message_id } = attempt;
  if (outcome !== 'sent') {
    return {
      ...NO_CHANGES,
      rejected: [{ id, provider, error: detail ?? '', dedupe_key: resultKey('rejected', attempt) }],
    };
  }
  const messageId = provider_message_id === null ? {} : { provider_message_id };
  return { ...NO_CHANGES, sent: [{ id, provider, ...messageId, dedupe_key: resultKey('sent', attempt) }] };
}

function toResult(
  deps: EmailDeps,
  attempt: Attempt,
  { changes, isCopied }: AnswerChanges,
  statuses: ReadonlyMap<string, EmailStatus>,
): CallResult {
  const { message_id: id, provider, outcome, failures } = attempt;
  const change = (['sent', 'rejected', 'bounced'] as const).find((each) => changes[each].length > 0);
  const status = isCopied ? statuses.get(id) : change;
  if (status !== undefined) return { id, state: 'ended', status, provider };
  if (hasFinalOutcome(attempt)) return { id, state: 'partial' };
  const detail = maskAddresses(attempt.detail ?? 'Some of its copies are still to be sent.');
  if (outcome === 'account') return retryResult(deps, { id, failures }, { kind: 'account', detail });
  return { id, state: 'again', reason: detail, failures };
}
