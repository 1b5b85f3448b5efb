import type { EmailStatus } from '../../domain/email/email.ts';
import { type Attempt, type AttemptChanges, hasFinalOutcome } from '../../store/emails/attempts.ts';
import type { CallResult } from '../contract.ts';
import { resultKey } from '../reconcile.ts';
import type { AttemptedEmail, EmailDeps } from './contract.ts';
import { type AnswerChanges, applyAnswers } from './record.ts';

/** Applies recorded answers without another provider call. */
export async function applyRecorded(deps: EmailDeps, emails: readonly AttemptedEmail[]): Promise<CallResult[]> {
  const answers = emails.map(toAnswer);
  const statuses = await applyAnswers(deps.pool, answers);
  deps.log.info({ emails: emails.length }, 'recorded answers applied');
  return emails.map(({ attempt }, index) => toResult(attempt, answers[index] as AnswerChanges, statuses));
}

function toAnswer({ attempt, hasCopiesLeft }: AttemptedEmail): AnswerChanges {
  const { changes } = attempt;
  // Reports may have ended all copies before the answer is applied: then only its changes show that the email has copies.
  const isCopied = hasCopiesLeft || (changes?.copies ?? []).length > 0;
  return { attempt, changes: changes ?? changesOf(attempt), areStored: changes !== null, isCopied };
}

function changesOf(attempt: Attempt): AttemptChanges {
  const { message_id: id, provider, outcome, detail, provider_message_id } = attempt;
  const none = { copies: [], sent: [], bounced: [], rejected: [] };
  if (outcome !== 'sent') {
    return { ...none, rejected: [{ id, provider, error: detail ?? '', dedupe_key: resultKey('rejected', attempt) }] };
  }
  const messageId = provider_message_id === null ? {} : { provider_message_id };
  return { ...none, sent: [{ id, provider, ...messageId, dedupe_key: resultKey('sent', attempt) }] };
}

function toResult(
  attempt: Attempt,
  { changes, isCopied }: AnswerChanges,
  statuses: ReadonlyMap<string, EmailStatus>,
): CallResult {
  const { message_id: id, provider } = attempt;
  const change = (['sent', 'rejected', 'bounced'] as const).find((each) => changes[each].length > 0);
  const status = isCopied ? statuses.get(id) : change;
  if (status !== undefined) return { id, state: 'ended', status, provider };
  if (hasFinalOutcome(attempt)) return { id, state: 'partial' };
  return { id, state: 'again', reason: 'Some of its copies are still to be sent.' };
}
