import { Context } from '@temporalio/activity';
import { SMALL_BODY_BYTES, readSendSizes, type SendSize } from '../src/store/emails/attempts.ts';
import { groupBy } from '../src/lib/group.ts';
import { postponeCheck } from '../src/store/emails/stuck.ts';
import { detachFromGroup } from '../src/store/outbox/outbox.ts';
import { publishCompletedBatches } from '../src/delivery/email/completed-batches.ts';
import { MAX_CALL_BYTES } from '../src/delivery/email/assign.ts';
import type { AgainResult, DeliveryStatus, Member, MemberResult } from '../src/delivery/contract.ts';
import { emailChannel } from '../src/delivery/email/channel.ts';
import type { EmailDeps } from '../src/delivery/email/contract.ts';
import { deliverEmails } from '../src/delivery/email/deliver.ts';
import { cancelScheduled, giveUp } from '../src/delivery/endings.ts';
import { type AttemptLimit, endedAs, hasReachedLimit, notAccepted, retryDelayMs, withHeartbeat } from './temporal.ts';
import { makeCallOverlap } from '../src/delivery/email/call-overlap.ts';

/** Emails that one workflow delivers, due at the same instant. */
interface Group {
  /** The workflow's id. */
  readonly id: string;
  readonly members: readonly Member[];
}

/** The result of delivering a group when no member has to be retried with it. */
export interface GroupDelivery {
  /** The number of emails by status; `detached` counts those that were detached from the group. */
  readonly counts: Partial<Record<DeliveryStatus | 'detached', number>>;
  readonly providers: readonly string[];
  /** Our timer was early for these: they are due in `inMs` milliseconds by the database's clock. */
  readonly early?: { readonly members: readonly Member[]; readonly inMs: number };
}

/** Milliseconds after which a group claims no more emails; its activity may take an hour. */
const CLAIM_DEADLINE_MS = 30 * 60_000;
/** If at most this many members were not accepted while others were, they are detached from the group. */
const MAX_DETACHED = 20;

/** The activities of groups. Each does one thing and may be repeated. */
export function makeGroupActivities(deps: EmailDeps) {
  return {
    /**
     * Sends the emails of a group that are due. If few were not accepted, these are detached: workflows of their own retry them.
     * @throws ApplicationFailure of type NotAccepted when the others should be retried together, or all be given up
     */
    deliverGroup: (input: Group & AttemptLimit): Promise<GroupDelivery> =>
      withHeartbeat(() => attemptGroup(deps, input)),

    /** Ends those emails of a group whose attempts are used up: they fail with their last answers. */
    async giveUpGroup({ id, members, maximumAttempts }: Group & { maximumAttempts: number }): Promise<void> {
      const ids = members.map((member) => member.id);
      await giveUpEmails(deps, id, ids, maximumAttempts);
      await publishCompletedBatches(deps, ids);
    },

    /** Cancels those emails of a group that are still scheduled and still belong to it. */
    async cancelGroup({ id, members }: Group): Promise<void> {
      const ids = members.map((member) => member.id);
      await cancelScheduled(deps, emailChannel(deps), ids, id);
    },
  };
}
export type GroupActivities = ReturnType<typeof makeGroupActivities>;

async function attemptGroup(
  deps: EmailDeps,
  { id, members, maximumAttempts }: Group & AttemptLimit,
): Promise<GroupDelivery> {
  const { cancellationSignal } = Context.current();
  // Also aborted when Temporal has given this activity to another worker, and after CLAIM_DEADLINE_MS.
  const signals = [deps.stopping, cancellationSignal, AbortSignal.timeout(CLAIM_DEADLINE_MS)];
  const stopping = {
    get aborted() {
      return signals.some(({ aborted }) => aborted);
    },
  };
  const attempted = await deliverInSlices(
    { ...deps, stopping },
    members.map((member) => Object.assign({}, member, { workflowId: id })),
  );
  const results = await endUsedUp(deps, id, attempted, maximumAttempts);
  await publishCompletedBatches(
    deps,
    members.map((member) => member.id),
  );
  const again = results.filter((result) => result.state === 'again');
  const areFew = again.length < results.length && again.length <= MAX_DETACHED;
  const detached = again.filter((result) => result.alone === true || areFew);
  const waitMsOf = (result: AgainResult) => retryDelayMs(deps, result);
  await detachFromGroup(
    deps.pool,
    id,
    detached.map((result) => ({ id: result.id, waitMs: waitMsOf(result), alone: result.alone === true })),
  );
  const remaining = again.filter((result) => !detached.includes(result));
  const postponed = remaining.filter((result) => result.postponed);
  await postponeCheck(
    deps.pool,
    postponed.map((result) => result.id),
    Math.max(0, ...postponed.map(waitMsOf)),
  );
  const delivery = summary(results, detached.length);
  const { counts } = delivery;
  deps.log.info({ group: id, emails: members.length, ...counts, again: remaining.length }, 'group attempted');
  const [first] = remaining;
  if (first) {
    throw notAccepted(
      `${remaining.length} of ${members.length} emails were not accepted. ${first.reason}`,
      remaining.every((result) => hasReachedLimit(result, maximumAttempts)),
      groupWaitMs(remaining, waitMsOf),
    );
  }
  return delivery;
}

async function giveUpEmails(
  deps: EmailDeps,
  group: string,
  ids: readonly string[],
  maximumAttempts: number,
): Promise<Map<string, DeliveryStatus>> {
  const statuses = await giveUp(deps, emailChannel(deps), ids, maximumAttempts, group);
  const failed = [...statuses.values()].filter((status) => status === 'failed').length;
  if (failed > 0) deps.log.warn({ group, emails: ids.length, failed }, 'emails of a group given up');
  return statuses;
}

/**
 * Gives up the emails that have reached the limit, so that they are not attempted again with the rest of the group or, detached, by
 * a workflow of their own.
 * @returns the results, with `ended` for emails that were given up
 */
async function endUsedUp(
  deps: EmailDeps,
  group: string,
  results: readonly MemberResult[],
  maximumAttempts = Infinity,
): Promise<readonly MemberResult[]> {
  const usedUp = results.filter((result) => result.state === 'again' && hasReachedLimit(result, maximumAttempts));
  if (usedUp.length === 0) return results;
  const ids = usedUp.map(({ id }) => id);
  const statuses = await giveUpEmails(deps, group, ids, maximumAttempts);
  return results.map((result) => endedAs(statuses.get(result.id), result));
}

/**
 * Delivers the emails of a group in slices of at most one provider call, counted in copies and bytes. The next slice starts when at
 * most `overlap` emails of the earlier slices are unfinished. While a provider has refused emails of an organization and accepted
 * none, the organization's further emails are not attempted.
 */
async function deliverInSlices(deps: EmailDeps, members: readonly Member[]): Promise<MemberResult[]> {
  const results: MemberResult[] = [];
  const calls = makeCallOverlap(deps.providers[0]?.overlap ?? 0);
  const sizes = await readSendSizes(
    deps.pool,
    members.map(({ id }) => id),
  );
  const orgOf = ({ id }: { readonly id: string }) => sizes.get(id)?.org_id;
  for (const slice of splitIntoSlices(deps, members, sizes)) {
    await calls.waitForCapacity();
    const refusals = refusalsByOrganization(results, orgOf);
    const open = slice.filter((member) => !refusals.has(orgOf(member)));
    for (const member of slice) {
      const refused = refusals.get(orgOf(member));
      if (refused) results.push(notAttempted(member.id, refused));
    }
    if (open.length === 0) continue;
    calls.run(open.length, async (onResults) => {
      results.push(...(await deliverEmails(deps, open, onResults)));
    });
  }
  await calls.end();
  return results;
}

/** Returns the result of an email that was not attempted after another one's refusal, without the failures of that one. */
function notAttempted(id: string, { reason, afterMs }: AgainResult): AgainResult {
  return { id, state: 'again', reason, failures: 0, ...(afterMs !== undefined && { afterMs }) };
}

/** Returns the last refusal of each organization of which no email was accepted yet. Other organizations may not be affected. */
function refusalsByOrganization(
  results: readonly MemberResult[],
  orgOf: (result: MemberResult) => string | undefined,
): Map<string | undefined, AgainResult> {
  const refusals = new Map<string | undefined, AgainResult>();
  for (const [org, own] of groupBy(results, orgOf)) {
    const refused = own.every(({ state }) => state === 'again') && own.findLast(isRefusal);
    if (refused) refusals.set(org, refused);
  }
  return refusals;
}

/**
 * Milliseconds until a group is tried again. Members that wait for a pause, for their organization or for the end of an earlier
 * call do not delay the others, which may be of other organizations.
 */
function groupWaitMs(members: readonly AgainResult[], waitMsOf: (result: AgainResult) => number): number {
  const attempted = members.filter(({ postponed }) => postponed !== true);
  return attempted.length > 0 ? Math.max(...attempted.map(waitMsOf)) : Math.min(...members.map(waitMsOf));
}

/** Returns true if the provider refused the member, and not because it was part of a group. */
function isRefusal(result: MemberResult): result is AgainResult {
  return result.state === 'again' && result.alone !== true && result.postponed !== true;
}

function splitIntoSlices(
  deps: EmailDeps,
  members: readonly Member[],
  sizes: ReadonlyMap<string, SendSize>,
): Member[][] {
  const maxCopies = deps.providers[0]?.callSize ?? 1;
  // A large email may take a minute; members of other organizations do not wait for it.
  const isLarge = ({ id }: Member) => (sizes.get(id)?.bytes ?? 0) > SMALL_BODY_BYTES;
  const smallFirst = [
    ...takeTurns(
      members.filter((member) => !isLarge(member)),
      sizes,
    ),
    ...takeTurns(members.filter(isLarge), sizes),
  ];
  const slices: Member[][] = [];
  let capacity = { copies: 0, bytes: 0 };
  for (const member of smallFirst) {
    const { copies = 1, bytes = 0 } = sizes.get(member.id) ?? {};
    const slice = slices.at(-1);
    if (slice && copies <= capacity.copies && bytes <= capacity.bytes) slice.push(member);
    else {
      slices.push([member]);
      capacity = { copies: maxCopies, bytes: MAX_CALL_BYTES };
    }
    capacity = { copies: capacity.copies - copies, bytes: capacity.bytes - bytes };
  }
  return slices;
}

/** Orders members so that organizations take turns: those with few members do not wait for the calls of another one. */
function takeTurns(members: readonly Member[], sizes: ReadonlyMap<string, SendSize>): Member[] {
  const turns = new Map<string | undefined, number>();
  const withTurns = members.map((member) => {
    const orgId = sizes.get(member.id)?.org_id;
    const turn = turns.get(orgId) ?? 0;
    turns.set(orgId, turn + 1);
    return { member, turn };
  });
  return withTurns.sort((a, b) => a.turn - b.turn).map(({ member }) => member);
}

function summary(results: readonly MemberResult[], detachedCount: number): GroupDelivery {
  const counts: GroupDelivery['counts'] = detachedCount > 0 ? { detached: detachedCount } : {};
  const providers = new Set<string>();
  const early: Member[] = [];
  let inMs = 0;
  for (const result of results) {
    if (result.state === 'ended') {
      counts[result.status] = (counts[result.status] ?? 0) + 1;
      if (result.provider !== undefined) providers.add(result.provider);
    } else if (result.state === 'waiting') {
      // Postgres's version: after a restore, the group's own may be ahead of it, and no claim with that one would succeed.
      early.push({ id: result.id, version: result.version });
      inMs = Math.max(inMs, result.inMs);
    }
  }
  return { counts, providers: [...providers], ...(early.length > 0 && { early: { members: early, inMs } }) };
}
