import { parseMailbox } from '../domain/email/address.ts';
import type { Attachment, AttachmentRequest } from '../domain/email/attachments.ts';
import { costOf } from '../domain/email/cost.ts';
import type { EmailRequest, Tag } from '../domain/email/email.ts';
import { requireValid, ServiceError } from '../domain/errors.ts';
import { newId } from '../lib/ids.ts';
import { project, projectReschedule } from '../projection/emails.ts';
import {
  type Acceptance,
  acceptEmails,
  judgeEmails,
  type NewEmail,
  type Refusal,
  type SenderAndTime,
} from '../store/emails/accept.ts';
import { insertAttachments } from '../store/emails/attachments.ts';
import { type Original, recordResend, senderOf } from '../store/emails/emails.ts';
import type { EmailContents } from '../store/emails/contents.ts';
import type { Semaphore } from '../lib/semaphore.ts';
import type { IdempotencyKey } from '../store/limits/idempotency.ts';
import { insertOutbox } from '../store/outbox/outbox.ts';
import { gather } from '../store/postgres/gather.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { messagesAccepted } from '../telemetry/topics.ts';
import type { Tracer } from '../telemetry/tracer.ts';
import { auditByChanger, type Changer } from '../accounts/audit.ts';
import type { WithFiles } from './attachments.ts';
import { refuseOtherSenders } from '../accounts/key-bounds.ts';
import { rejectReusedKey } from './idempotency.ts';
import { type OrganizationLimits, UNLIMITED_ORGANIZATION } from '../accounts/organization-limits.ts';
import { makeBatchSlots } from './batch-slots.ts';
import { makeQuotaQueue, type QuotaQueue } from './quota-queue.ts';
import { quotaExceeded, requireQuota } from './quota.ts';
import type { RateLimits } from './rate-limits.ts';
import { organizationSuspended } from '../accounts/suspension.ts';
import { type TagRegistry, UNLIMITED_TAGS } from './tag-registry.ts';
import { parseSchedule, scheduleError, scheduleChangeError } from './schedule.ts';

/** The organization and restrictions of a request. */
export interface Caller {
  readonly orgId: string;
  /** The only domains that the caller may send from; null allows every domain of the organization. */
  readonly domainIds: readonly string[] | null;
  /** The API key of the request; undefined for the dashboard. */
  readonly keyId?: string;
}

/** Stores a single email. Resolves after the commit. */
type StoreEmail = (caller: Caller, email: NewEmail) => Promise<Acceptance>;

/** Limits on sending. Quotas themselves are stored in the database. */
export interface Limits extends RateLimits {
  readonly quota: QuotaQueue;
  readonly batches: Semaphore;
  readonly organization: OrganizationLimits;
  readonly tags: TagRegistry;
}

export const noLimits = (): Limits => ({
  requests: null,
  mails: null,
  domains: null,
  quota: makeQuotaQueue(),
  batches: makeBatchSlots(),
  organization: UNLIMITED_ORGANIZATION,
  tags: UNLIMITED_TAGS,
});

/** The fields of a request that an email without copies, tags, extra headers and schedule does not set. */
export const PLAIN_REQUEST = {
  cc: null,
  bcc: null,
  reply_to: null,
  html: null,
  marketing: false,
  tags: [],
  headers: {},
  scheduled_at: null,
} satisfies Partial<EmailRequest>;

export interface IntakeDeps {
  readonly pool: Pool;
  /** Called after each commit that may have added outbox rows or webhook deliveries that are due. */
  readonly wakeRelay: () => void;
  readonly withFiles: WithFiles;
  readonly storeEmail: StoreEmail;
  readonly contents: EmailContents;
  readonly limits: Limits;
  /** Set when tracing is enabled. */
  readonly tracer?: Tracer | undefined;
}

export interface AcceptOptions {
  readonly attachments?: readonly AttachmentRequest[] | undefined;
  /** The request's idempotency key, with which the response is stored. */
  readonly idempotency?: IdempotencyKey | undefined;
  /** The email that this one repeats. The two are linked in the transaction that stores this one. */
  readonly original?: Original | undefined;
}

/**
 * Stores one email for delivery, with its files.
 * @throws ServiceError in this order: validation_error for a time out of bounds; domain_not_found, domain_not_verified or
 * insufficient_scope for its `from` or a suspended organization; invalid_attachment; rate_limit_exceeded, quota_exceeded or
 * limit_exceeded. Also concurrent_idempotent_requests if another request has used the key meanwhile, and conflict if `original` may
 * not be resent
 */
export async function acceptEmail(
  deps: IntakeDeps,
  caller: Caller,
  request: EmailRequest,
  { attachments = [], idempotency, original }: AcceptOptions = {},
): Promise<Acceptance> {
  const { orgId, keyId } = caller;
  const { limits } = deps;
  const origin = { batchId: null, keyId, traceparent: deps.tracer?.current(), idempotency };
  const email = newEmail(request, senderAndTime(request), origin);
  const newTags = new Map<string, Tag>();
  limits.tags.collectUnknown(orgId, request.tags, newTags);
  const submission: Submission = { deps, caller, email, original, cost: costOf(request), newTags, hasTokens: false };
  const hasFiles = attachments.length > 0;
  // Errors of the email itself take precedence over those of its files and over limits.
  if (hasFiles || newTags.size > 0) await judge(submission);
  const storing = hasFiles ? storeWithFiles(submission, attachments) : storeAlone(submission);
  const acceptance = await storing.catch((error: unknown) => {
    if (submission.hasTokens) limits.mails?.refund(orgId, submission.cost);
    throw error;
  });
  messagesAccepted.publish({ kind: 'email', by: 'single', count: 1 });
  deps.wakeRelay();
  return acceptance;
}

/** An email that is being accepted. */
interface Submission {
  readonly deps: IntakeDeps;
  readonly caller: Caller;
  readonly email: NewEmail;
  /** The email that it repeats; undefined for all others. */
  readonly original: Original | undefined;
  /** The number of copies that count against the monthly quota and the rate limit. */
  readonly cost: number;
  /** The email's tags that may be new to the organization. */
  readonly newTags: ReadonlyMap<string, Tag>;
  /** True after its tokens were taken from the rate limit. */
  hasTokens: boolean;
}

/** @throws ServiceError if the sender or the time of the email is refused */
async function judge({ deps, caller: { orgId, domainIds }, email }: Submission): Promise<void> {
  const first = await judgeEmails(deps.pool, orgId, domainIds, [email]);
  if (first) throw refusalError(first.refusal, email);
}

async function storeAlone(submission: Submission): Promise<Acceptance> {
  await admit(submission);
  if (submission.original !== undefined) return storeInTransaction(submission, []);
  const { deps, caller, email } = submission;
  const storing = deps.storeEmail(caller, await sealEmail(deps, caller.orgId, email));
  return requireAccepted(submission, deps.pool, storing);
}

function storeWithFiles(submission: Submission, requests: readonly AttachmentRequest[]): Promise<Acceptance> {
  const { deps, caller, cost } = submission;
  return deps.withFiles({ orgId: caller.orgId, requests, cost, admit: () => admit(submission) }, (files) =>
    storeInTransaction(submission, files),
  );
}

async function storeInTransaction(submission: Submission, files: readonly Attachment[]): Promise<Acceptance> {
  const { deps, caller, email, original } = submission;
  const { orgId, domainIds } = caller;
  const sealed = await sealEmail(deps, orgId, email);
  const store = async (client: Db): Promise<Acceptance> => {
    const storing = acceptEmails(client, orgId, domainIds, [sealed]).then(([answer]) => answer);
    const acceptance = await requireAccepted(submission, client, storing);
    if (files.length > 0) await insertAttachments(client, orgId, email.id, files);
    if (original && !(await recordResend(client, orgId, original, email.id)) && original.status !== undefined)
      throw new ServiceError('conflict', `This email has been resent meanwhile, or is no longer ${original.status}.`);
    return acceptance;
  };
  return deps.limits.quota.run(orgId, () => transaction(deps.pool, store));
}

/** Takes tokens of the rate limit and registers new tags. @throws ServiceError rate_limit_exceeded, quota_exceeded or limit_exceeded */
async function admit(submission: Submission): Promise<void> {
  const { deps, caller, cost, newTags } = submission;
  try {
    deps.limits.mails?.take(caller.orgId, cost);
  } catch (limit) {
    // Errors of the email take precedence over the limit. Without a limit the statement that stores the email reports them.
    await judge(submission);
    throw limit;
  }
  submission.hasTokens = true;
  if (newTags.size === 0) return;
  // Tags stay registered, so an email that the quota refuses must not register them.
  await requireQuota(deps.pool, caller.orgId, cost);
  await deps.limits.tags.register(caller.orgId, newTags);
}

/** @throws ServiceError if the statement that stores the email refused it */
async function requireAccepted(
  { deps, caller: { orgId }, email, cost }: Submission,
  db: Db,
  storing: Promise<Acceptance | undefined>,
): Promise<Acceptance> {
  const acceptance = await rejectReusedKey(storing);
  if (!acceptance) throw new Error('acceptEmails returned no row');
  deps.limits.quota.recordUsage(orgId, acceptance.has_quota);
  if (acceptance.refusal === 'quota_exceeded') throw await quotaExceeded(db, orgId, cost);
  if (acceptance.refusal) throw refusalError(acceptance.refusal, email);
  return acceptance;
}

const MAX_EMAILS_PER_STATEMENT = 100;

/**
 * Creates a writer that stores concurrent emails of one caller in one statement and commit: those that arrive during a write
 * share the next one.
 */
export function gatherEmails(pool: Pool): StoreEmail {
  const callers = new Map<string, (email: NewEmail) => Promise<Acceptance>>();

  return ({ orgId, domainIds }, email) => {
    const name = JSON.stringify([orgId, domainIds]);
    let store = callers.get(name);
    if (!store) {
      const write = (emails: readonly NewEmail[]) => storeTogether(pool, { orgId, domainIds }, emails);
      store = gather(write, MAX_EMAILS_PER_STATEMENT, () => callers.delete(name));
      callers.set(name, store);
    }
    return store(email);
  };
}

async function storeTogether(
  pool: Pool,
  { orgId, domainIds }: Caller,
  emails: readonly NewEmail[],
): Promise<Acceptance[]> {
  const answers = await acceptEmails(pool, orgId, domainIds, emails);
  // Nothing was stored. The error makes `gather` store each email alone, because the quota may suffice for some of them.
  if (emails.length > 1 && answers.some(({ refusal }) => refusal === 'quota_exceeded')) {
    throw new Error('the quota does not suffice for all of these emails');
  }
  return answers;
}

/** The batch, API key, trace and idempotency key of an email. */
export interface Origin {
  readonly batchId: string | null;
  /** Undefined for the dashboard, and for the members of a batch, which has it. */
  readonly keyId?: string | undefined;
  /** The span of the request; undefined when tracing is disabled. */
  readonly traceparent: string | undefined;
  /** Undefined for the members of a batch, because the key belongs to the whole batch. */
  readonly idempotency?: IdempotencyKey | undefined;
}

/**
 * Combines a request with its parsed sender and time. Uses `Object.assign` on this hot path: in Node 20 each field that is added
 * to a spread costs 2 µs and leaves garbage that only a full collection frees.
 */
export function newEmail(
  request: EmailRequest,
  parsed: SenderAndTime,
  { batchId: batch_id, keyId: key_id, traceparent, idempotency }: Origin,
): NewEmail {
  const added = { id: newId('em'), event_id: newId('evt'), batch_id, key_id, traceparent, idempotency };
  return Object.assign({}, request, parsed, added);
}

/** Encrypts the content of an email before it is stored. */
export async function sealEmail(
  { pool, contents }: Pick<IntakeDeps, 'pool' | 'contents'>,
  orgId: string,
  email: NewEmail,
): Promise<NewEmail> {
  const sealed = await contents.seal(pool, orgId, email.id, email);
  return Object.assign({}, email, { html: null, text: null, headers: {}, sealed });
}

/** Returns the fields that the database checks. */
export function senderAndTime({ from, scheduled_at: time }: EmailRequest): SenderAndTime {
  return { from_domain: domainOf(from), scheduled_at: time === null ? null : parseSchedule(time) };
}

function domainOf(from: string): string {
  return requireValid(parseMailbox(from), 'from').domain;
}

/** Converts a refusal of the database into an error. */
export function refusalError(refusal: Refusal, { from }: Pick<EmailRequest, 'from'>): ServiceError {
  const domain = domainOf(from);
  switch (refusal) {
    case 'past':
    case 'far':
      return scheduleError(refusal);
    case 'suspended':
      return organizationSuspended();
    case 'domain_not_found':
      return new ServiceError(
        refusal,
        `the domain ${domain} is not registered on this account; a subdomain is registered on its own`,
        'from',
      );
    case 'domain_not_verified':
      return new ServiceError(refusal, `the domain ${domain} is registered but not verified yet`, 'from');
    case 'insufficient_scope':
      return new ServiceError(refusal, `this API key may not send from the domain ${domain}`, 'from');
  }
}

/**
 * Changes the time of a scheduled email.
 * @throws ServiceError validation_error, not_found, not_scheduled or, for an email from another domain, insufficient_scope
 */
export async function rescheduleEmail(
  deps: IntakeDeps,
  orgId: string,
  id: string,
  scheduledAt: string,
  changer: Changer = {},
): Promise<{ id: string; status: 'scheduled'; scheduled_at: string }> {
  const time = parseSchedule(scheduledAt);
  await refuseOthersEmail(deps.pool, orgId, id, changer);
  const newTime = await transaction(deps.pool, async (client) => {
    const scheduled_at = await projectReschedule(client, orgId, id, time);
    if (scheduled_at === undefined) return undefined;
    await auditByChanger(client, orgId, changer, 'emails.reschedule', id, { scheduled_at });
    return scheduled_at;
  });
  if (newTime === undefined) throw await scheduleChangeError(deps.pool, orgId, id, time);
  deps.wakeRelay();
  return { id, status: 'scheduled', scheduled_at: newTime };
}

/**
 * Cancels a scheduled email. It is not sent after this returns.
 * @throws ServiceError not_found, not_scheduled or, for an email from another domain, insufficient_scope
 */
export async function cancelEmail(
  deps: IntakeDeps,
  orgId: string,
  id: string,
  changer: Changer = {},
): Promise<{ id: string; status: 'canceled' }> {
  await refuseOthersEmail(deps.pool, orgId, id, changer);
  const canceled = await transaction(deps.pool, async (client) => {
    const changed = await project(client, 'canceled', [{ id }], orgId);
    if (changed.length === 0) return false;
    await Promise.all([
      insertOutbox(client, 'cancel', changed),
      auditByChanger(client, orgId, changer, 'emails.cancel', id),
    ]);
    return true;
  });
  if (!canceled) throw await scheduleChangeError(deps.pool, orgId, id, null);
  deps.wakeRelay();
  return { id, status: 'canceled' };
}

/** Refuses changes to an email from a domain that the key may not send from. Unrestricted keys need no query. */
async function refuseOthersEmail(db: Db, orgId: string, id: string, { domainIds = null }: Changer): Promise<void> {
  if (domainIds === null) return;
  const from = await senderOf(db, orgId, id);
  if (from !== undefined) await refuseOtherSenders(db, orgId, domainIds, [from]);
}
