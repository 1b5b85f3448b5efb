import { performance } from 'node:perf_hooks';
import { newId } from '../src/domain/ids.ts';
import { type OutgoingEmail, toOutgoing } from '../src/domain/outgoing.ts';
import { project } from '../src/projection/emails.ts';
import type { EmailProvider } from '../src/providers/email-provider.ts';
import { type Attempt, beginAttempts, lastAttempts, type LockedEmail, lockEmails } from '../src/store/attempts.ts';
import { type Db, transaction } from '../src/store/pool.ts';
import type { EmailDeps, Member, MemberResult } from './contract.ts';

/** An email that nobody else may send now, with its attempt written down. */
export interface ClaimedEmail {
  readonly outgoing: OutgoingEmail;
  readonly orgId: string;
  readonly provider: EmailProvider;
  readonly n: number;
  readonly call: string;
  /** Of the monotonic clock, in milliseconds. */
  readonly claimedAt: number;
}

/** An email whose last attempt has no certain outcome: its provider must be asked before it is sent again. */
export interface UnsettledEmail {
  readonly member: Member;
  readonly attempt: Attempt;
}

export interface Claims {
  readonly ready: readonly ClaimedEmail[];
  readonly unsettled: readonly UnsettledEmail[];
  readonly results: readonly MemberResult[];
}

/**
 * Sorts members into those that may be sent now, those of unknown outcome and those with nothing to do, and takes the
 * first for us: from the commit on, reschedule and cancel come too late and the attempts are on record.
 */
export async function claim(deps: EmailDeps, members: readonly Member[]): Promise<Claims> {
  if (members.length === 0) return { ready: [], unsettled: [], results: [] };
  const ids = members.map((member) => member.id);
  return transaction(deps.pool, async (client) => {
    const emails = new Map((await lockEmails(client, ids)).map((email) => [email.id, email]));
    const attempts = new Map((await lastAttempts(client, ids)).map((attempt) => [attempt.message_id, attempt]));
    const results: MemberResult[] = [];
    const unsettled: UnsettledEmail[] = [];
    const due: LockedEmail[] = [];
    for (const member of members) {
      const email = emails.get(member.id);
      const attempt = attempts.get(member.id);
      const standing = email && standsInTheWay(email, member);
      if (!email) results.push({ id: member.id, state: 'ended', status: 'canceled' });
      else if (standing) results.push(standing);
      else if (attempt && isUnsettled(attempt)) unsettled.push({ member, attempt });
      else due.push(email);
    }
    const scheduled = due.filter((email) => email.status === 'scheduled');
    await project(
      client,
      'claimed',
      scheduled.map(({ id }) => ({ id })),
    );
    const { ready, failed } = await assign(deps, client, due, attempts);
    return { ready, unsettled, results: [...results, ...failed] };
  });
}

/** Nobody saw the end of it: its worker died, or the provider left us without an answer. */
export function isUnsettled(attempt: Attempt): boolean {
  return attempt.outcome === null || attempt.outcome === 'unknown';
}

/** Why an email is not ours to send now, if so. */
function standsInTheWay(email: LockedEmail, { id, version }: Member): MemberResult | undefined {
  const { status, schedule_version, scheduled_at, due_in, provider } = email;
  if (status === 'scheduled') {
    if (schedule_version === version && due_in === 0) return undefined;
    return { id, state: 'waiting', version: schedule_version, dueAt: scheduled_at as string, inMs: due_in };
  }
  // Claimed before at another version: another workflow carries it.
  if (status === 'queued' && schedule_version === version) return undefined;
  return { id, state: 'ended', status, ...(provider !== null && { provider }) };
}

/** An email as a provider gets it, or why it cannot be one: what was accepted weeks ago may break a rule of today. */
function readable(email: LockedEmail): OutgoingEmail | string {
  try {
    return toOutgoing(email);
  } catch (error) {
    return `This email cannot be sent: ${(error as Error).message}.`;
  }
}

/** Gives each email the first provider that can carry it and writes its attempt down; fails those that none can. */
async function assign(
  deps: EmailDeps,
  client: Db,
  emails: readonly LockedEmail[],
  attempts: ReadonlyMap<string, Attempt>,
): Promise<{ ready: ClaimedEmail[]; failed: MemberResult[] }> {
  const calls = new Map(deps.providers.map((provider) => [provider, newId('call', Date.now())]));
  const claimedAt = performance.now();
  const ready: ClaimedEmail[] = [];
  const failed: { id: string; error: string }[] = [];
  for (const email of emails) {
    const outgoing = readable(email);
    if (typeof outgoing === 'string') {
      failed.push({ id: email.id, error: outgoing });
      continue;
    }
    const refusals = deps.providers.map((provider) => provider.refusal(outgoing));
    const provider = deps.providers.find((_, index) => refusals[index] === undefined);
    if (!provider) {
      failed.push({ id: email.id, error: `No provider can carry this email. ${refusals.join(' ')}` });
      continue;
    }
    const n = (attempts.get(email.id)?.n ?? 0) + 1;
    ready.push({ outgoing, orgId: email.org_id, provider, n, call: calls.get(provider) as string, claimedAt });
  }
  await beginAttempts(
    client,
    ready.map(({ outgoing, n, call, provider }) => ({ message_id: outgoing.id, n, call, provider: provider.name })),
  );
  await project(client, 'failed', failed);
  return { ready, failed: failed.map(({ id }) => ({ id, state: 'ended', status: 'failed' })) };
}
