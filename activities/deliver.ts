import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import { groupBy } from '../src/domain/group.ts';
import { maskAddresses } from '../src/domain/mask.ts';
import { type SendOutcome, type Verdict, verdict } from '../src/domain/retry.ts';
import { project } from '../src/projection/emails.ts';
import { type AttemptOutcome, endAttempts } from '../src/store/attempts.ts';
import { type Db, transaction } from '../src/store/pool.ts';
import { claim, type ClaimedEmail, UNREADABLE, type UnreadEmail } from './claim.ts';
import type { EmailDeps, Member, MemberResult } from './contract.ts';
import type { FilesOfEmails } from './files.ts';
import { persist } from './persist.ts';
import { endOfCall, settle } from './settle.ts';

/** Milliseconds between claim and call. A worker that was frozen longer than that lets others go first. */
const CLAIM_HOLDS = 20_000;

/** UTF-16 units of what a provider said that are kept. */
const DETAIL_LENGTH = 2_000;

/**
 * Claims emails, hands them over and records what became of each. Safe to repeat: an earlier call whose end nobody saw
 * is looked up at the provider before anything is sent again.
 * @returns one result for each member, in any order
 */
export async function deliver(deps: EmailDeps, members: readonly Member[]): Promise<MemberResult[]> {
  const { results, unread } = await deliverRead(deps, members, new Map());
  // One at a time, since files are large; and before they are claimed, so that a store that is away costs no attempt.
  for (const { member, attachments } of unread) {
    const delivered = await deps.files.read(member.id, attachments, (files) => deliverRead(deps, [member], files));
    if (delivered) results.push(...delivered.results);
    else results.push({ id: member.id, ...UNREADABLE });
  }
  return results;
}

async function deliverRead(
  deps: EmailDeps,
  members: readonly Member[],
  files: FilesOfEmails,
): Promise<{ results: MemberResult[]; unread: readonly UnreadEmail[] }> {
  const first = await claim(deps, members, files);
  const settled = await settle(deps, first.unsettled);
  // What the provider certainly does not have is claimed again, now with a new attempt.
  const second = await claim(deps, settled.lost, files);
  const overtaken = second.unsettled.map(({ member: { id } }): MemberResult => ({
    id,
    state: 'again',
    reason: 'Another worker has just made an attempt.',
  }));
  const sent = await send(deps, [...first.ready, ...second.ready]);
  const results = [...first.results, ...settled.results, ...second.results, ...overtaken, ...sent];
  return { results, unread: first.unread };
}

async function send(deps: EmailDeps, emails: readonly ClaimedEmail[]): Promise<MemberResult[]> {
  const calls = groupBy(emails, (email) => email.call);
  const results = await Promise.all([...calls.values()].map((members) => makeCall(deps, members)));
  return results.flat();
}

async function makeCall(deps: EmailDeps, emails: readonly ClaimedEmail[]): Promise<MemberResult[]> {
  const outcomes = await callProvider(emails);
  const records = emails.map((email, index) => {
    const outcome = outcomes[index] as SendOutcome;
    return { email, outcome, verdict: verdict(outcome) };
  });
  await persist(() => transaction(deps.pool, (client) => record(client, records)));
  return records.map((entry) => {
    logOutcome(deps.log, entry);
    return toResult(deps, entry);
  });
}

async function callProvider(emails: readonly ClaimedEmail[]): Promise<SendOutcome[]> {
  const [{ provider, call, claimedAt }] = emails as [ClaimedEmail];
  if (performance.now() - claimedAt > CLAIM_HOLDS) {
    return emails.map(() => ({ kind: 'busy', detail: 'The worker was too slow to send it.' }));
  }
  const outcomes = await provider.send(
    emails.map(({ outgoing }) => outgoing),
    call,
  );
  return outcomes.map(storable);
}

/** A server may say anything, at any length; Postgres takes no NUL, and what it refused could never be recorded. */
function storable(outcome: SendOutcome): SendOutcome {
  if (!('detail' in outcome)) return outcome;
  return { ...outcome, detail: outcome.detail.replaceAll('\0', '').slice(0, DETAIL_LENGTH) };
}

interface Record {
  readonly email: ClaimedEmail;
  readonly outcome: SendOutcome;
  readonly verdict: Verdict;
}

const ATTEMPT_OUTCOMES: { readonly [K in SendOutcome['kind']]: AttemptOutcome } = {
  sent: 'sent',
  bounced: 'refused',
  rejected: 'refused',
  busy: 'again',
  account: 'again',
  unknown: 'unknown',
};

async function record(client: Db, records: readonly Record[]): Promise<void> {
  await endAttempts(
    client,
    records.map(({ email, outcome }) => ({
      message_id: email.outgoing.id,
      n: email.n,
      outcome: ATTEMPT_OUTCOMES[outcome.kind],
      detail: 'detail' in outcome ? outcome.detail : null,
    })),
  );
  const changed = records.flatMap(({ email, outcome, verdict }) =>
    'change' in verdict ? [{ change: verdict.change, email: toChange(email, outcome, verdict.change) }] : [],
  );
  for (const [change, entries] of groupBy(changed, (entry) => entry.change)) {
    await project(
      client,
      change,
      entries.map((entry) => entry.email),
    );
  }
}

function toChange(
  { outgoing: { id }, provider: { name }, call }: ClaimedEmail,
  outcome: SendOutcome,
  change: 'sent' | 'bounced' | 'rejected',
) {
  const said = { id, provider: name, dedupe_key: endOfCall(change, call) };
  if (outcome.kind === 'sent') return { ...said, provider_message_id: outcome.messageId };
  const reason = outcome.kind === 'bounced' ? { bounce_reason: outcome.reason } : {};
  return { ...said, error: outcome.detail, ...reason };
}

function toResult(deps: EmailDeps, { email, outcome, verdict }: Record): MemberResult {
  const { id } = email.outgoing;
  if ('change' in verdict) return { id, state: 'ended', status: verdict.change, provider: email.provider.name };
  const after = verdict.again === 'at the slowest' ? deps.maximumInterval : verdict.after;
  return {
    id,
    state: 'again',
    reason: 'detail' in outcome ? maskAddresses(outcome.detail) : outcome.kind,
    ...(after !== undefined && { after }),
    ...(outcome.kind === 'busy' && outcome.alone && { alone: true }),
  };
}

function logOutcome(log: Logger, { email, outcome }: Record): void {
  const line = {
    email: email.outgoing.id,
    org: email.orgId,
    provider: email.provider.name,
    call: email.call,
    attempt: email.n,
    outcome: outcome.kind,
    detail: 'detail' in outcome ? maskAddresses(outcome.detail) : undefined,
  };
  if (outcome.kind === 'account') log.error(line, 'the provider refuses our account');
  else log.info(line, 'email handed to a provider');
}
