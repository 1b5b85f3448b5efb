import type { EmailProviderName } from '../../domain/email/email.ts';
import { addressees, copyKey, emailOfKey, recipients } from '../../domain/email/outgoing.ts';
import { project } from '../../projection/emails.ts';
import { lockEmails, lockStatuses } from '../../store/emails/attempts.ts';
import { findSuspendedEmails } from '../../store/accounts/suspension.ts';
import { type CopyEnding, endCopies, prepareCopies } from '../../store/emails/recipients.ts';
import { postponeCheck } from '../../store/emails/stuck.ts';
import type { Db } from '../../store/postgres/pool.ts';
import type { Channel } from '../contract.ts';
import { resultKey } from '../reconcile.ts';
import { callProvider } from './call.ts';
import { publishCompletedBatches } from './completed-batches.ts';
import { canBeLookedUp, claim } from './claim.ts';
import type { AttemptedEmail, EmailDeps, EmailTypes, LargeContents } from './contract.ts';
import { endCopied, fail } from './copies.ts';
import { applyOutcomes } from './record.ts';
import { applyRecorded } from './unapplied.ts';

/**
 * A call without a recorded outcome has certainly ended this long after its claim, even if its worker is alive: the expiry of
 * a claim plus the longest duration of a call.
 */
const CALL_IS_OVER_MS: Readonly<Record<string, number>> = { postmark: 75_000, smtp: 720_000 } satisfies Record<
  EmailProviderName,
  number
>;

/** @param contents the content of large emails, which was read before */
export function emailChannel(deps: EmailDeps, contents: LargeContents = new Map()): Channel<EmailTypes> {
  return {
    kind: 'email',
    claim: (members) => claim(deps, members, contents),
    call: (emails, onAnswer, onLate) => callProvider(deps, emails, onAnswer, onLate),
    apply: (answers) =>
      applyOutcomes(
        deps,
        answers.map(({ sent }) => sent),
      ),
    onLateAnswers: (ids) => publishCompletedBatches(deps, ids),
    applyRecorded: (emails) => applyRecorded(deps, emails),

    lookUp([email]) {
      const { attempt } = email as AttemptedEmail;
      const provider = deps.providers.find(({ name }) => name === attempt.provider);
      return provider?.find && (async () => (await provider.find?.(attempt.call)) ?? new Map());
    },

    async recordFound(client, emails, found) {
      // Locks all emails in the order in which reports lock them, to prevent deadlocks: each step below locks only its own.
      await lockStatuses(
        client,
        emails.map(({ member: { id } }) => id),
      );
      const whole = emails.filter(({ hasCopiesLeft, member }) => !hasCopiesLeft && found.has(member.id));
      const copied = await endCopiesFound(client, emails, found);
      await project(
        client,
        'sent',
        whole.map(({ member: { id }, attempt }) => ({
          id,
          provider: attempt.provider,
          provider_message_id: found.get(id) as string,
          dedupe_key: resultKey('sent', attempt),
        })),
      );
      return [...whole, ...copied];
    },

    callIsOverInMs({ outcome, provider, ageMs }, workerGoneForMs = -Infinity) {
      if (outcome === 'unknown') return 0;
      const overAfterMs = CALL_IS_OVER_MS[provider] ?? Math.max(...Object.values(CALL_IS_OVER_MS));
      return Math.max(0, Math.min(overAfterMs - ageMs, deps.goneWorkerWaitMs - workerGoneForMs));
    },

    canBeLookedUp: (_, attempt) => Promise.resolve(canBeLookedUp(deps, attempt)),
    fail,
    lockStatuses,
    findSuspended: findSuspendedEmails,
    postponeCheck: (ids, waitMs) => postponeCheck(deps.pool, ids, waitMs),
    cancel: (client, ids) =>
      project(
        client,
        'canceled',
        ids.map((id) => ({ id })),
      ),
  };
}

/** Records the copies that the provider has. @returns the emails without remaining copies */
async function endCopiesFound(
  client: Db,
  emails: readonly AttemptedEmail[],
  found: ReadonlyMap<string, string>,
): Promise<AttemptedEmail[]> {
  const inCopies = new Set([...found.keys()].filter((key) => emailOfKey(key) !== key).map(emailOfKey));
  const copied = emails.filter(({ hasCopiesLeft, member }) => hasCopiesLeft || inCopies.has(member.id));
  if (copied.length === 0) return [];
  const ids = copied.map(({ member: { id } }) => id);
  const locked = await lockEmails(client, ids);
  // After a restore from an older backup, the copies may not be recorded.
  const unprepared = new Set(copied.filter(({ hasCopiesLeft }) => !hasCopiesLeft).map(({ member: { id } }) => id));
  const copies = locked.flatMap((email) => {
    if (!unprepared.has(email.id)) return [];
    const each = recipients(addressees(email));
    return each.map(({ address }) => ({ email_id: email.id, recipient: address.toLowerCase(), suppressed: false }));
  });
  await prepareCopies(client, copies);
  const endings = locked.flatMap((email) => {
    const named = recipients(addressees(email)).map(({ address }, copy) => ({ address, copy }));
    return named.flatMap(({ address, copy }): CopyEnding[] => {
      const messageId = found.get(copyKey(email.id, copy));
      if (messageId === undefined) return [];
      const recipient = address.toLowerCase();
      return [{ email_id: email.id, recipient, status: 'sent', error: null, provider_message_id: messageId }];
    });
  });
  await endCopies(client, endings);
  const ended = await endCopied(client, ids);
  return copied.filter(({ member: { id } }) => ended.has(id));
}
