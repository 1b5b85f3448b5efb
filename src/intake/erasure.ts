import { performance } from 'node:perf_hooks';
import { whatsAppForms } from '../domain/chat/phone.ts';
import { bareAddress } from '../domain/email/address.ts';
import { recipientTerms } from '../domain/email/search.ts';
import { chunksOf } from '../lib/group.ts';
import { markDeleted } from '../store/emails/attachments.ts';
import { eraseContents, findFileIds } from '../store/emails/content-erasure.ts';
import type { EmailContents } from '../store/emails/contents.ts';
import {
  type AddressedEmail,
  deleteCallbacksNaming,
  type ErasedAddress,
  lockAddressed,
  replaceAddressed,
  replaceInAuditLog,
  replaceInRecords,
  replaceInWebhookEvents,
  suppressHashes,
  walkEmails,
  type WalkStep,
} from '../store/emails/erasure.ts';
import { eraseMessageContents } from '../store/messages/content-erasure.ts';
import {
  deleteContactsOf,
  type ErasedNumber,
  eraseReceived,
  findMessagesTo,
  findUserIds,
  replaceInResponses,
  replaceRecipient,
  suppressNumberHashes,
} from '../store/messages/erasure.ts';
import { moveTerm } from '../store/emails/search-index.ts';
import type { FileStore } from '../store/files/file-store.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { toErasedAddress, toErasedNumber } from './erased-recipient.ts';

export interface ErasureDeps {
  readonly pool: Pool;
  readonly contents: EmailContents;
  readonly files: FileStore;
}

/** A recipient to erase: a bare address in lower case, or a telephone number in E.164. */
export type Recipient = { readonly email: string } | { readonly phone: string };

/**
 * The tables and logs to erase from, in this order. Contacts are last: until then, they name the chat-app users who write from a
 * number.
 */
const PHASES = {
  email: ['emails', 'search_index', 'webhook_events', 'audit_log', 'provider_callbacks'],
  phone: ['messages', 'received', 'webhook_events', 'audit_log', 'responses', 'provider_callbacks', 'contacts'],
} as const;
type Phase = (typeof PHASES)[keyof typeof PHASES][number];

/** The position at which an erasure continues. */
interface ErasurePosition {
  readonly phase: Phase;
  /** The last row of the previous step, in the order of the phase; empty at its start. */
  readonly after: string;
}

/** Rows that one step reads, and messages that one transaction changes. */
const STEP_ROWS = 2_000;
const MESSAGES_PER_TRANSACTION = 100;
/** A call returns after this time; the caller continues with another call. */
const MAX_CALL_MS = 3_000;

const EMPTY_REPORT = {
  emails: 0,
  messages: 0,
  contents: 0,
  files: 0,
  events: 0,
  recipients: 0,
  attempts: 0,
  webhook_events: 0,
  audit_entries: 0,
  provider_callbacks: 0,
  suppressions: 0,
  received: 0,
  contacts: 0,
};
/** The numbers of rows that an erasure has changed or deleted. The API's schema describes them. */
type ErasureReport = typeof EMPTY_REPORT;

/**
 * Replaces a recipient in all stored data of an organization by a placeholder. From the first step on the recipient is suppressed by
 * its hash. A call takes a few seconds and works in small transactions. Idempotent.
 * @param position the position at which the previous call ended; null for the first call
 * @returns the changes of this call, and the position for the next call; null after the last one
 */
export async function eraseRecipient(
  deps: ErasureDeps,
  orgId: string,
  recipient: Recipient,
  position: ErasurePosition | null,
): Promise<{ report: ErasureReport; next: ErasurePosition | null }> {
  const report = { ...EMPTY_REPORT };
  await deps.contents.prepare(deps.pool, orgId);
  const takeStep =
    'email' in recipient
      ? await beginEmail(deps, orgId, recipient.email, position, report)
      : await beginNumber(deps, orgId, recipient.phone, position, report);
  const phases: readonly Phase[] = 'email' in recipient ? PHASES.email : PHASES.phone;
  const startedAt = performance.now();
  let next: ErasurePosition | null = position ?? { phase: phases[0] as Phase, after: '' };
  while (next && performance.now() - startedAt < MAX_CALL_MS) {
    const after: string | null = await takeStep(next);
    const following: Phase | undefined = phases[phases.indexOf(next.phase) + 1];
    if (after !== null) next = { phase: next.phase, after };
    else next = following ? { phase: following, after: '' } : null;
  }
  return { report, next };
}

/** @returns the next position of the phase; null when it is complete */
type TakeStep = (position: ErasurePosition) => Promise<string | null>;

/** Suppresses the address in the first call. The placeholder must not get mail either: pending emails are then addressed to it. */
async function beginEmail(
  deps: ErasureDeps,
  orgId: string,
  email: string,
  position: ErasurePosition | null,
  report: ErasureReport,
): Promise<TakeStep> {
  const [hash] = await hashesOf(deps, orgId, [email]);
  const erased = toErasedAddress(email, `${placeholderOf(hash)}@erased.invalid`);
  if (!position) {
    const hashes = await hashesOf(deps, orgId, [email, erased.placeholder]);
    report.suppressions = await suppressHashes(deps.pool, orgId, email, hashes);
  }
  return ({ phase, after }) => {
    if (phase === 'emails') return eraseInEmails(deps, orgId, erased, after, report);
    if (phase === 'search_index') return eraseInSearchIndex(deps, orgId, erased);
    return eraseInLogs(deps, orgId, erased, { phase, after }, report);
  };
}

/** The same for a number: all its forms, and the chat-app users who write from it. */
async function beginNumber(
  deps: ErasureDeps,
  orgId: string,
  number: string,
  position: ErasurePosition | null,
  report: ErasureReport,
): Promise<TakeStep> {
  const { pool } = deps;
  const forms = [...new Set([number, ...whatsAppForms(number)])];
  const userIds = await findUserIds(pool, orgId, forms);
  const [hash] = await hashesOf(deps, orgId, [number]);
  const erased = toErasedNumber(number, forms, userIds, placeholderOf(hash));
  if (!position) {
    const hashes = await hashesOf(deps, orgId, [...erased.ids, erased.placeholder]);
    report.suppressions = await suppressNumberHashes(pool, orgId, erased.ids, hashes);
  }
  return async ({ phase, after }) => {
    switch (phase) {
      case 'messages':
        return eraseInMessages(deps, orgId, erased, report);
      case 'received':
        return count(await eraseReceived(pool, orgId, erased, after, STEP_ROWS), report, 'received');
      case 'responses':
        return replaceInResponses(pool, orgId, erased, after, STEP_ROWS);
      case 'contacts':
        report.contacts += await deleteContactsOf(pool, orgId, erased.ids);
        return null;
      default:
        return eraseInLogs(deps, orgId, erased, { phase, after }, report);
    }
  };
}

/** @returns the hashes of addresses, numbers and ids, in their order */
async function hashesOf({ contents, pool }: ErasureDeps, orgId: string, texts: readonly string[]): Promise<Buffer[]> {
  const hashes = await contents.hashAddresses(pool, orgId, texts);
  if (!hashes) throw new Error(`${orgId} has no data key`);
  return hashes;
}

function placeholderOf(hash: Buffer | undefined): string {
  return `erased-${hash?.toString('hex', 0, 8)}`;
}

function count({ next, changed }: WalkStep, report: ErasureReport, name: keyof ErasureReport): string | null {
  report[name] += changed;
  return next;
}

/** Erases from what refers to recipients of all channels. */
async function eraseInLogs(
  { pool }: ErasureDeps,
  orgId: string,
  erased: ErasedAddress,
  { phase, after }: ErasurePosition,
  report: ErasureReport,
): Promise<string | null> {
  if (phase === 'webhook_events')
    return count(await replaceInWebhookEvents(pool, orgId, erased, after, STEP_ROWS), report, 'webhook_events');
  if (phase === 'audit_log')
    return count(await replaceInAuditLog(pool, orgId, erased, after, STEP_ROWS), report, 'audit_entries');
  return count(await deleteCallbacksNaming(pool, orgId, erased, after, STEP_ROWS), report, 'provider_callbacks');
}

/** Each message has one recipient, so the content of those that have ended is erased. */
async function eraseInMessages(
  { pool }: ErasureDeps,
  orgId: string,
  erased: ErasedNumber,
  report: ErasureReport,
): Promise<string | null> {
  const ids = await findMessagesTo(pool, orgId, erased.ids, MESSAGES_PER_TRANSACTION);
  if (ids.length === 0) return null;
  await transaction(pool, async (client) => {
    const results = await eraseMessageContents(client, orgId, ids);
    const { events, attempts } = await replaceRecipient(client, ids, erased);
    report.messages += ids.length;
    report.contents += results.filter(({ is_open: isOpen }) => !isOpen).length;
    report.events += events;
    report.attempts += attempts;
  });
  return ids.length === MESSAGES_PER_TRANSACTION ? 'more' : null;
}

async function eraseInEmails(
  deps: ErasureDeps,
  orgId: string,
  erased: ErasedAddress,
  after: string,
  report: ErasureReport,
): Promise<string | null> {
  const [created_at = '-infinity', id = ''] = after === '' ? [] : after.split('|');
  const walked = await walkEmails(deps.pool, orgId, erased, { created_at, id }, STEP_ROWS);
  const ids = walked.filter(({ is_candidate: isCandidate }) => isCandidate).map((email) => email.id);
  for (const chunk of chunksOf(ids, MESSAGES_PER_TRANSACTION)) {
    await transaction(deps.pool, (client) => eraseFromEmails(deps, client, orgId, erased, chunk, report));
  }
  const last = walked.at(-1);
  return last && walked.length === STEP_ROWS ? `${last.created_at}|${last.id}` : null;
}

/**
 * Moves the address's own term to the placeholder, so that a search for the placeholder finds its emails. The terms of the domain
 * remain: search results are checked against the emails.
 */
async function eraseInSearchIndex(
  { pool }: ErasureDeps,
  orgId: string,
  { address, placeholder }: ErasedAddress,
): Promise<string | null> {
  const [from] = recipientTerms(address);
  const movedBlocks = await transaction(pool, (client) =>
    moveTerm(client, orgId, from, recipientTerms(placeholder), STEP_ROWS),
  );
  return movedBlocks === STEP_ROWS ? 'more' : null;
}

async function eraseFromEmails(
  { files }: ErasureDeps,
  client: Db,
  orgId: string,
  erased: ErasedAddress,
  ids: readonly string[],
  report: ErasureReport,
): Promise<void> {
  const emails = await lockAddressed(client, ids);
  const isErased = (text: string) => bareAddress(text) === erased.address;
  const named = emails.filter(({ to, cc, bcc, reply_to }) =>
    [to, cc, bcc, reply_to].flat().some((text) => text !== null && isErased(text)),
  );
  await replaceAddressed(
    client,
    erased,
    emails.map((email) => withoutAddress(email, erased)),
  );
  const { events, recipients, attempts } = await replaceInRecords(client, ids, erased);
  report.emails += named.length;
  report.events += events;
  report.recipients += recipients;
  report.attempts += attempts;
  const alone = named
    .filter(({ to, cc, bcc, is_open: isOpen }) => !isOpen && [to, cc ?? [], bcc ?? []].flat().every(isErased))
    .map(({ id }) => id);
  if (alone.length === 0) return;
  const contents = await eraseContents(client, orgId, alone);
  const fileIds = await findFileIds(client, alone);
  await markDeleted(client, fileIds);
  if (fileIds.length > 0) await files.remove(fileIds);
  report.contents += contents.length;
  report.files += fileIds.length;
}

function withoutAddress(email: AddressedEmail, { address, placeholder }: ErasedAddress): AddressedEmail {
  const replace = <T extends string[] | null>(list: T) =>
    (list && list.map((text) => (bareAddress(text) === address ? placeholder : text))) as T;
  const { to, cc, bcc, reply_to } = email;
  return { ...email, to: replace(to), cc: replace(cc), bcc: replace(bcc), reply_to: replace(reply_to) };
}

/** Erases a recipient completely. @returns the sum of the reports of all calls */
export async function eraseRecipientCompletely(
  deps: ErasureDeps,
  orgId: string,
  recipient: Recipient,
): Promise<ErasureReport> {
  const total = { ...EMPTY_REPORT };
  let position: ErasurePosition | null = null;
  do {
    const part: Awaited<ReturnType<typeof eraseRecipient>> = await eraseRecipient(deps, orgId, recipient, position);
    for (const name of Object.keys(total) as (keyof ErasureReport)[]) total[name] += part.report[name];
    position = part.next;
  } while (position);
  return total;
}

/** Parses a position of an erasure of a recipient. @returns undefined for invalid text */
export function parsePosition(recipient: Recipient, phase: string, after: string): ErasurePosition | undefined {
  const phases: readonly Phase[] = 'email' in recipient ? PHASES.email : PHASES.phone;
  const parsed = phases.find((name) => name === phase);
  return parsed && { phase: parsed, after };
}
