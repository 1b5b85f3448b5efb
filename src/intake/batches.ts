import type { BatchStatus } from '../domain/email/batch.ts';
import { costOf } from '../domain/email/cost.ts';
import type { EmailRequest, Tag } from '../domain/email/email.ts';
import { notFound, ServiceError } from '../domain/errors.ts';
import { makeDeadline } from '../lib/deadline.ts';
import { newId } from '../lib/ids.ts';
import { GROUP_SIZE } from '../domain/limits.ts';
import { chunksOf } from '../lib/group.ts';
import { announceBatches } from '../projection/batches.ts';
import { project } from '../projection/emails.ts';
import { type AcceptedBatch, findBatch, insertBatch, scheduledMembers } from '../store/emails/batches.ts';
import {
  acceptEmails,
  judgeEmails,
  type NewEmail,
  type RefusedEmail,
  type SenderAndTime,
} from '../store/emails/accept.ts';
import type { IdempotencyKey } from '../store/limits/idempotency.ts';
import { insertGroup, insertOutbox } from '../store/outbox/outbox.ts';
import { type Db, transaction } from '../store/postgres/pool.ts';
import { countAgainstQuota } from '../store/limits/quota.ts';
import { messagesAccepted } from '../telemetry/topics.ts';
import { auditByChanger, type Changer } from '../accounts/audit.ts';
import {
  type Caller,
  senderAndTime,
  type IntakeDeps,
  newEmail,
  type Origin,
  refusalError,
  sealEmail,
} from './emails.ts';
import { refuseOtherSenders } from '../accounts/key-bounds.ts';
import { rejectReusedKey } from './idempotency.ts';
import { quotaExceeded, requireQuota } from './quota.ts';
import { mapInSlices, startTimeSlices } from './time-slices.ts';

/**
 * Emails per statement: enough to amortize the round trip, and few enough not to delay other requests. A group consists of a
 * whole number of statements.
 */
const EMAILS_PER_STATEMENT = GROUP_SIZE / 2;

/** The maximum time that a batch waits for a slot before the response 503. */
const MAX_SLOT_WAIT_MS = 60_000;

export interface BatchIntakeDeps extends IntakeDeps {
  /** True if relays start fewer than `GROUP_SIZE` workflows in a burst, so that the members of a batch share workflows. */
  readonly sharesWorkflows: boolean;
}

/**
 * Stores all emails of a batch for delivery, or none.
 * @param idempotency the request's idempotency key, with which the response is stored
 * @param disconnected aborts when the caller disconnects. The batch is then refused if it still waits for a slot, because its body no
 * longer counts against the memory limit
 * @throws ServiceError at `emails.<index>.<field>` for the errors of acceptEmail, times of all emails before domains;
 * rate_limit_exceeded, quota_exceeded, limit_exceeded or unavailable for the whole batch
 */
export async function acceptBatch(
  deps: BatchIntakeDeps,
  caller: Caller,
  requests: readonly EmailRequest[],
  idempotency?: IdempotencyKey,
  disconnected?: AbortSignal,
): Promise<AcceptedBatch> {
  const id = newId('bt');
  const parsed = await mapInSlices(requests, senderAndTime);
  const scheduled = parsed.filter((each) => each.scheduled_at !== null).length;
  const total = requests.length;
  const traceparent = deps.tracer?.current();
  const cost = await countCost(requests);
  const batch: Batch = { caller, requests, parsed };
  await registerTags(deps, batch, cost);
  await deps.contents.prepare(deps.pool, caller.orgId);
  let hasTokens = false;
  const storing = inBatchSlot(deps, { orgId: caller.orgId, disconnected }, async (client) => {
    // Check all emails first: if the last one were refused later, the rows of the others would be dead tuples that Postgres must
    // vacuum.
    const first = await judgeEmails(client, caller.orgId, caller.domainIds, parsed);
    if (first) throw refusedEmailError(requests, first);
    deps.limits.mails?.take(caller.orgId, cost);
    hasTokens = true;
    const stored = { id, total, scheduled, keyId: caller.keyId };
    const { accepted, left } = await insertBatch(client, caller.orgId, stored, idempotency);
    if (left !== null && left < cost) throw await quotaExceeded(client, caller.orgId, cost);
    await storeMembers(deps, client, batch, { batchId: id, traceparent });
    if (left !== null && !(await countAgainstQuota(client, caller.orgId, cost))) {
      throw await quotaExceeded(client, caller.orgId, cost);
    }
    return accepted;
  });
  const accepted = await rejectReusedKey(storing).catch((error: unknown) => {
    if (hasTokens) deps.limits.mails?.refund(caller.orgId, cost);
    throw error;
  });
  messagesAccepted.publish({ kind: 'email', by: 'batch', count: total });
  deps.wakeRelay();
  return accepted;
}

/**
 * Runs a transaction on a batch once the organization has a slot.
 * @throws ServiceError unavailable if it gets no slot in time, or if the caller disconnects while it waits
 */
async function inBatchSlot<T>(
  { pool, limits }: IntakeDeps,
  { orgId, disconnected }: { readonly orgId: string; readonly disconnected?: AbortSignal | undefined },
  work: (client: Db) => Promise<T>,
): Promise<T> {
  const signal = makeDeadline(MAX_SLOT_WAIT_MS, disconnected ? [disconnected] : []);
  const release = await limits.batches.take(1, { signal, holder: orgId }).catch(() => {
    throw new ServiceError('unavailable', 'too many batches at a time; try again');
  });
  return transaction(pool, work).finally(release);
}

/** The requests of a batch, with the senders and times that were parsed from them. */
interface Batch {
  readonly caller: Caller;
  readonly requests: readonly EmailRequest[];
  readonly parsed: readonly SenderAndTime[];
}

/** Creates the error for a refused email of a batch, at its position. A suspension concerns the whole batch. */
function refusedEmailError(requests: readonly EmailRequest[], { index, refusal }: RefusedEmail): ServiceError {
  const error = refusalError(refusal, requests[index] as EmailRequest);
  return refusal === 'suspended' ? error : error.within(`emails.${index}`);
}

/**
 * Registers new tags before the transaction that stores the batch. Otherwise it would block other requests with new tags until it
 * ends.
 */
async function registerTags(
  { pool, limits }: IntakeDeps,
  { caller: { orgId, domainIds }, requests, parsed }: Batch,
  cost: number,
): Promise<void> {
  const newTags = new Map<string, Tag>();
  const yieldIfDue = startTimeSlices();
  for (const { tags } of requests) {
    limits.tags.collectUnknown(orgId, tags, newTags);
    await yieldIfDue();
  }
  if (newTags.size === 0) return;
  const first = await judgeEmails(pool, orgId, domainIds, parsed);
  if (first) throw refusedEmailError(requests, first);
  // Tags stay registered, so a batch that the quota refuses must not register them.
  await requireQuota(pool, orgId, cost);
  await limits.tags.register(orgId, newTags);
}

/**
 * Stores the members of a batch. If a whole group is due immediately, its members share a workflow from the start, which saves
 * one outbox row and one update for each email. While Postgres stores one chunk, the next one is prepared and sent.
 */
async function storeMembers(
  deps: BatchIntakeDeps,
  client: Db,
  { caller: { orgId, domainIds }, requests, parsed }: Batch,
  origin: Origin,
): Promise<void> {
  const { batchId: batch_id, traceparent } = origin;
  const traceparents = traceparent === undefined ? [] : [traceparent];
  let before: Promise<unknown> | undefined;
  let group: string | null = null;
  let members: string[] = [];
  for (let from = 0; from < requests.length; from += EMAILS_PER_STATEMENT) {
    if (from % GROUP_SIZE === 0) {
      const isShared = deps.sharesWorkflows && isGroup(parsed.slice(from, from + GROUP_SIZE));
      group = isShared ? newId('grp') : null;
      members = [];
    }
    const emails = await sealEmails(
      deps,
      orgId,
      requests
        .slice(from, from + EMAILS_PER_STATEMENT)
        .map((request, index) => newEmail(request, parsed[from + index] as SenderAndTime, origin)),
    );
    members.push(...emails.map(({ id }) => id));
    const storing = acceptEmails(client, orgId, domainIds, emails, group).then((answers) => {
      // An email can still be refused, for example if its domain was deleted after `judgeEmails`.
      const index = answers.findIndex(({ refusal }) => refusal !== null);
      const refusal = answers[index]?.refusal;
      if (refusal && refusal !== 'quota_exceeded') throw refusedEmailError(requests, { index: from + index, refusal });
    });
    const stored = Promise.all([
      storing,
      group !== null &&
        members.length === GROUP_SIZE &&
        insertGroup(client, group, { members, org_id: orgId, batch_id, traceparents }),
    ]);
    // The loop awaits this promise later; the handler prevents an unhandled rejection until then.
    stored.catch(() => undefined);
    await before;
    before = stored;
  }
  await before;
}

function isGroup(members: readonly SenderAndTime[]): boolean {
  return members.length === GROUP_SIZE && members.every(({ scheduled_at }) => scheduled_at === null);
}

async function sealEmails(deps: IntakeDeps, orgId: string, emails: readonly NewEmail[]): Promise<NewEmail[]> {
  const sealed: NewEmail[] = [];
  const yieldIfDue = startTimeSlices();
  for (const email of emails) {
    sealed.push(await sealEmail(deps, orgId, email));
    await yieldIfDue();
  }
  return sealed;
}

/**
 * Finds the first email of a batch whose time is out of bounds. Other refusals are left to `acceptBatch`.
 * @returns validation_error at `emails.<index>.scheduled_at`
 */
export async function findBadTime(
  { pool }: IntakeDeps,
  { orgId, domainIds }: Caller,
  requests: readonly EmailRequest[],
): Promise<ServiceError | undefined> {
  const first = await judgeEmails(pool, orgId, domainIds, await mapInSlices(requests, senderAndTime));
  const error = first && refusedEmailError(requests, first);
  return error?.code === 'validation_error' ? error : undefined;
}

/** Returns what the emails of a batch take from the quota together. */
async function countCost(requests: readonly EmailRequest[]): Promise<number> {
  const costs = await mapInSlices(requests, costOf);
  return costs.reduce((sum, cost) => sum + cost, 0);
}

/**
 * Cancels every scheduled member of a batch. None of them is sent after this returns.
 * @returns the number of canceled members, and the status of the batch
 * @throws ServiceError not_found, not_scheduled if no member is scheduled, insufficient_scope if a member is from a domain that
 * the caller may not change, or unavailable
 */
export async function cancelBatch(
  deps: IntakeDeps,
  orgId: string,
  id: string,
  changer: Changer = {},
): Promise<{ id: string; status: BatchStatus; canceled: number }> {
  const { domainIds = null } = changer;
  const answer = await inBatchSlot(deps, { orgId }, async (client) => {
    if (!(await findBatch(client, orgId, id))) throw notFound('batch');
    const members = await scheduledMembers(client, orgId, id);
    if (domainIds !== null) {
      await refuseOtherSenders(
        client,
        orgId,
        domainIds,
        members.map(({ from }) => from),
      );
    }
    let canceled = 0;
    for (const chunk of chunksOf(members, EMAILS_PER_STATEMENT)) {
      // Members that a worker has claimed meanwhile are no longer scheduled and remain unchanged.
      const changed = await project(client, 'canceled', chunk, orgId);
      await insertOutbox(client, 'cancel', changed);
      canceled += changed.length;
    }
    if (canceled === 0) throw new ServiceError('not_scheduled', 'no email of this batch is still scheduled');
    await auditByChanger(client, orgId, changer, 'batches.cancel', id, { canceled });
    const batch = await findBatch(client, orgId, id);
    return { id, status: batch?.status ?? 'canceled', canceled };
  });
  // The batch is canceled even if this fails; upkeep publishes the event later.
  await announceBatches(deps.pool, [id]).catch(() => undefined);
  deps.wakeRelay();
  return answer;
}
