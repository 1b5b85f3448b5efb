import type { EmailProviderName, EmailStatus } from '../../domain/email/email.ts';
import { groupBy } from '../../lib/group.ts';
import { copyKey, emailOfKey, recipients, toOutgoing } from '../../domain/email/outgoing.ts';
import { project } from '../../projection/emails.ts';
import type { EmailProvider } from '../../providers/email-provider.ts';
import {
  type Attempt,
  type AttemptOutcome,
  countRepeats,
  endAttempts,
  lockEmails,
  recordLookups,
} from '../../store/emails/attempts.ts';
import { type CopyEnding, endCopies, prepareCopies } from '../../store/emails/recipients.ts';
import { type Db, transaction } from '../../store/postgres/pool.ts';
import { ambiguousEnded, type AmbiguousOutcome } from '../../telemetry/topics.ts';
import type { AttemptedEmail } from './claim.ts';
import type { EmailDeps, Member, MemberResult } from './contract.ts';
import { endCopied, fail } from './copies.ts';

/**
 * A call without a recorded outcome has certainly ended this long after its claim, even if its worker is alive: the expiry of
 * a claim plus the longest duration of a call.
 */
const CALL_IS_OVER_MS: Readonly<Record<string, number>> = { postmark: 75_000, smtp: 720_000 } satisfies Record<
  EmailProviderName,
  number
>;

function callIsOverAfterMs({ provider }: Attempt): number {
  return CALL_IS_OVER_MS[provider] ?? Math.max(...Object.values(CALL_IS_OVER_MS));
}

/** Concurrent look-ups at a provider: after a restore, each email of a group needs one. */
const MAX_CONCURRENT_LOOKUPS = 10;

/**
 * The deduplication key of a call's result. The result may be recorded several times: by its worker, by that worker again
 * after a lost commit acknowledgement, and by another worker that queried the provider.
 */
export function endOfCall(change: 'sent' | 'bounced' | 'rejected', call: string): string {
  return `${change} ${call}`;
}

export interface Reconciled {
  /** The provider does not have them, or AMBIGUOUS_SEND allows a repeated send: they may be attempted again. */
  readonly lost: readonly Member[];
  readonly results: readonly MemberResult[];
}

/** Asks providers whether they accepted the emails of ambiguous attempts, with one look-up per call. */
export async function reconcile(deps: EmailDeps, emails: readonly AttemptedEmail[]): Promise<Reconciled> {
  const calls = [...groupBy(emails, ({ attempt }) => attempt.call).values()];
  const reconciled: Reconciled[] = [];
  for (let from = 0; from < calls.length; from += MAX_CONCURRENT_LOOKUPS) {
    const some = calls.slice(from, from + MAX_CONCURRENT_LOOKUPS);
    reconciled.push(...(await Promise.all(some.map((members) => reconcileCall(deps, members)))));
  }
  return { lost: reconciled.flatMap(({ lost }) => lost), results: reconciled.flatMap(({ results }) => results) };
}

async function reconcileCall(deps: EmailDeps, emails: readonly AttemptedEmail[]): Promise<Reconciled> {
  const [{ attempt }] = emails as [AttemptedEmail];
  const provider = deps.providers.find(({ name }) => name === attempt.provider);
  if (!provider?.find) return applyAmbiguousSend(deps, emails);

  const found = await findAtProvider(provider, attempt.call);
  const { taken, lost, open } = await transaction(deps.pool, async (client) => {
    const whole = emails.filter(({ isCopied, member }) => !isCopied && found?.has(member.id));
    const copied = found ? await endCopiesFound(client, provider, emails, found) : [];
    const taken = [...whole, ...copied];
    const notFound = emails.filter((email) => found && !taken.includes(email));
    const lost = notFound.filter(({ attempt }) => (attempt.not_found_for ?? -1) >= deps.confirmNotFoundAfterMs);
    const open = emails.filter((email) => !taken.includes(email) && !lost.includes(email));
    await endAttempts(client, taken.map(ending('sent', null)));
    await project(
      client,
      'sent',
      whole.map(({ member: { id } }) => ({
        id,
        provider: provider.name,
        provider_message_id: found?.get(id) as string,
        dedupe_key: endOfCall('sent', attempt.call),
      })),
    );
    await endAttempts(client, lost.map(ending('lost', `${provider.name} does not have it.`)));
    await recordLookups(
      client,
      attempt.call,
      open.map(({ member }) => member.id),
      found !== undefined,
    );
    return { taken, lost, open };
  });
  countOutcomes(provider.name, 'found', taken);
  countOutcomes(provider.name, 'lost', lost);
  deps.log.info(
    { call: attempt.call, provider: provider.name, taken: taken.length, lost: lost.length, open: open.length },
    'ambiguous call looked up at provider',
  );
  const reason = found ? 'The provider may not have it; it is asked once more.' : 'The provider cannot be asked now.';
  return {
    lost: lost.map(({ member }) => member),
    results: [
      ...taken.map(({ member: { id } }) => ended(id, 'sent', provider.name)),
      ...open.map(({ member: { id } }): MemberResult => {
        return { id, state: 'again', reason, ...(found && { afterMs: deps.confirmNotFoundAfterMs }) };
      }),
    ],
  };
}

/** Records the copies that the provider has. @returns the emails without remaining copies */
async function endCopiesFound(
  client: Db,
  provider: EmailProvider,
  emails: readonly AttemptedEmail[],
  found: ReadonlyMap<string, string>,
): Promise<AttemptedEmail[]> {
  const inCopies = new Set([...found.keys()].filter((key) => emailOfKey(key) !== key).map(emailOfKey));
  const copied = emails.filter(({ isCopied, member }) => isCopied || inCopies.has(member.id));
  if (copied.length === 0) return [];
  const ids = copied.map(({ member: { id } }) => id);
  const locked = await lockEmails(client, ids);
  // After a restore from an older backup, the copies may not be recorded.
  const unprepared = new Set(copied.filter(({ isCopied }) => !isCopied).map(({ member: { id } }) => id));
  const copies = locked.flatMap((email) => {
    if (!unprepared.has(email.id)) return [];
    const each = recipients(toOutgoing(email));
    return each.map(({ address }) => ({ email_id: email.id, recipient: address.toLowerCase(), suppressed: false }));
  });
  await prepareCopies(client, copies);
  const endings = locked.flatMap((email) => {
    const named = recipients(toOutgoing(email)).map(({ address }, copy) => ({ address, copy }));
    return named.flatMap(({ address, copy }): CopyEnding[] => {
      const messageId = found.get(copyKey(email.id, copy));
      if (messageId === undefined) return [];
      const recipient = address.toLowerCase();
      return [{ email_id: email.id, recipient, status: 'sent', error: null, provider_message_id: messageId }];
    });
  });
  await endCopies(client, endings);
  const ended = await endCopied(client, ids, provider.name);
  return copied.filter(({ member: { id } }) => ended.has(id));
}

async function findAtProvider(provider: EmailProvider, call: string): Promise<ReadonlyMap<string, string> | undefined> {
  try {
    return await provider.find?.(call);
  } catch {
    return undefined;
  }
}

/** Applies the setting AMBIGUOUS_SEND once a call that cannot be looked up has certainly ended. */
async function applyAmbiguousSend(deps: EmailDeps, emails: readonly AttemptedEmail[]): Promise<Reconciled> {
  const over = emails.filter(
    ({ attempt }) => attempt.outcome === 'unknown' || attempt.age >= callIsOverAfterMs(attempt),
  );
  const results = emails
    .filter((email) => !over.includes(email))
    .map(({ member: { id }, attempt }): MemberResult => {
      return {
        id,
        state: 'again',
        reason: 'An earlier call may still be under way.',
        afterMs: callIsOverAfterMs(attempt) - attempt.age,
      };
    });
  if (over.length === 0) return { lost: [], results };

  deps.log.warn(
    { emails: over.map(({ member }) => member.id), provider: over[0]?.attempt.provider, policy: deps.ambiguousSend },
    'ambiguous call cannot be looked up',
  );
  const repeats = await countRepeats(
    deps.pool,
    over.map(({ attempt }) => attempt),
  );
  const errorOf = ({ member }: AttemptedEmail) => repeatRefusal(deps, repeats.get(member.id) ?? 0);
  const repeated = over.filter((email) => errorOf(email) === undefined);
  await endAttempts(
    deps.pool,
    repeated.map(ending('risked', 'Nobody can say whether it was taken; it is sent again.')),
  );
  countOutcomes(over[0]?.attempt.provider, 'risked', repeated);

  const failed = over.flatMap((email) => {
    const error = errorOf(email);
    return error === undefined ? [] : { email, error };
  });
  const statuses = await failAmbiguous(deps, failed);
  countOutcomes(
    over[0]?.attempt.provider,
    'given_up',
    failed.map(({ email }) => email),
  );
  return {
    lost: repeated.map(({ member }) => member),
    results: [...results, ...[...statuses].map(([id, status]) => ended(id, status))],
  };
}

async function failAmbiguous(
  deps: EmailDeps,
  failed: readonly { email: AttemptedEmail; error: string }[],
): Promise<Map<string, EmailStatus>> {
  if (failed.length === 0) return new Map();
  return transaction(deps.pool, async (client) => {
    await endAttempts(
      client,
      failed.map(({ email, error }) => ending('unknown', error)(email)),
    );
    return fail(
      client,
      failed.map(({ email, error }) => ({ id: email.member.id, error })),
    );
  });
}

/**
 * Applies the setting AMBIGUOUS_SEND to a message whose ambiguous call cannot be looked up.
 * @param repeats the number of earlier repeated sends after ambiguous calls
 * @returns the error as a sentence for customers; undefined if the message may be sent again
 */
export function repeatRefusal(
  { ambiguousSend, ambiguousSendMaxRepeats }: Pick<EmailDeps, 'ambiguousSend' | 'ambiguousSendMaxRepeats'>,
  repeats: number,
): string | undefined {
  if (ambiguousSend === 'retry' && repeats < ambiguousSendMaxRepeats) return undefined;
  if (repeats === 0) return 'The provider may have taken it, but cannot say so; it was not sent again.';
  const times = repeats === 1 ? 'once' : `${repeats} times`;
  return `It may have been delivered: the provider did not confirm it and cannot be asked. It was sent again ${times}, and is not sent any more.`;
}

function countOutcomes(
  provider: string | undefined,
  outcome: AmbiguousOutcome,
  { length: count }: readonly AttemptedEmail[],
): void {
  if (provider !== undefined && count > 0) ambiguousEnded.publish({ kind: 'email', provider, outcome, count });
}

function ending(outcome: AttemptOutcome, detail: string | null) {
  return ({ attempt: { message_id, n } }: AttemptedEmail) => ({ message_id, n, outcome, detail });
}

function ended(id: string, status: EmailStatus, provider?: string): MemberResult {
  return { id, state: 'ended', status, ...(provider !== undefined && { provider }) };
}
