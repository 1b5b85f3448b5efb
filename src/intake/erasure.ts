import { performance } from 'node:perf_hooks';
import { domainToUnicode } from 'node:url';
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
import { moveTerm } from '../store/emails/search-index.ts';
import type { FileStore } from '../store/files/file-store.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';

interface ErasureDeps {
  readonly pool: Pool;
  readonly contents: EmailContents;
  readonly files: FileStore;
}

/** The tables and logs to erase from, in this order. */
const PHASES = ['emails', 'search_index', 'webhook_events', 'audit_log', 'provider_callbacks'] as const;
type Phase = (typeof PHASES)[number];

/** The position at which an erasure continues. */
interface ErasurePosition {
  readonly phase: Phase;
  /** The last row of the previous step, in the order of the phase; empty at its start. */
  readonly after: string;
}

/** Rows that one step reads, and emails that one transaction changes. */
const STEP_ROWS = 2_000;
const EMAILS_PER_TRANSACTION = 100;
/** A call returns after this time; the caller continues with another call. */
const MAX_CALL_MS = 3_000;

const EMPTY_REPORT = {
  emails: 0,
  contents: 0,
  files: 0,
  events: 0,
  recipients: 0,
  attempts: 0,
  webhook_events: 0,
  audit_entries: 0,
  provider_callbacks: 0,
  suppressions: 0,
};
/** The numbers of rows that an erasure has changed or deleted. The API's schema describes them. */
type ErasureReport = typeof EMPTY_REPORT;

/**
 * Replaces an address in all stored data of an organization by a placeholder. From the first step on the address is suppressed by
 * its hash. A call takes a few seconds and works in small transactions. Idempotent.
 * @param email bare, in lower case
 * @param position the position at which the previous call ended; null for the first call
 * @returns the changes of this call, and the position for the next call; null after the last one
 */
export async function eraseRecipient(
  deps: ErasureDeps,
  orgId: string,
  email: string,
  position: ErasurePosition | null,
): Promise<{ report: ErasureReport; next: ErasurePosition | null }> {
  const report = { ...EMPTY_REPORT };
  await deps.contents.prepare(deps.pool, orgId);
  const hash = await hashOf(deps, orgId, email);
  const erased = toErasedAddress(email, `erased-${hash.toString('hex', 0, 8)}@erased.invalid`);
  if (!position) {
    // Pending emails are then addressed to the placeholder, which must not get mail either.
    const hashes = [hash, await hashOf(deps, orgId, erased.placeholder)];
    report.suppressions = await suppressHashes(deps.pool, orgId, email, hashes);
  }
  const startedAt = performance.now();
  let next: ErasurePosition | null = position ?? { phase: PHASES[0], after: '' };
  while (next && performance.now() - startedAt < MAX_CALL_MS) {
    const after: string | null = await takeStep(deps, orgId, erased, next, report);
    const following: Phase | undefined = PHASES[PHASES.indexOf(next.phase) + 1];
    if (after !== null) next = { phase: next.phase, after };
    else next = following ? { phase: following, after: '' } : null;
  }
  return { report, next };
}

async function hashOf({ contents, pool }: ErasureDeps, orgId: string, address: string): Promise<Buffer> {
  const [hash] = (await contents.hashAddresses(pool, orgId, [address])) ?? [];
  if (!hash) throw new Error(`${orgId} has no data key`);
  return hash;
}

/** @returns the next position of the phase; null when it is complete */
async function takeStep(
  deps: ErasureDeps,
  orgId: string,
  erased: ErasedAddress,
  { phase, after }: ErasurePosition,
  report: ErasureReport,
): Promise<string | null> {
  const note = ({ next, changed }: WalkStep, name: keyof ErasureReport): string | null => {
    report[name] += changed;
    return next;
  };
  switch (phase) {
    case 'emails':
      return eraseInEmails(deps, orgId, erased, after, report);
    case 'search_index':
      return eraseInSearchIndex(deps, orgId, erased);
    case 'webhook_events':
      return note(await replaceInWebhookEvents(deps.pool, orgId, erased, after, STEP_ROWS), 'webhook_events');
    case 'audit_log':
      return note(await replaceInAuditLog(deps.pool, orgId, erased, after, STEP_ROWS), 'audit_entries');
    case 'provider_callbacks':
      return note(await deleteCallbacksNaming(deps.pool, orgId, erased, after, STEP_ROWS), 'provider_callbacks');
  }
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
  for (const chunk of chunksOf(ids, EMAILS_PER_TRANSACTION)) {
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

/**
 * Characters of a local part: if they precede a match, it is the end of a longer address. Punctuation that also encloses addresses
 * in replies and URLs is such a character only after a letter or digit; &, =, / and ? always delimit an address.
 */
const LONGER_ADDRESS = "[A-Za-z0-9_.+~-]|[A-Za-z0-9]['!#$%*^`{|}]";
/**
 * Encoded characters that delimit an address although they end in a letter or digit: escapes of JSON, and percent-encoded white
 * space, double quotes, brackets, and & , / : ; = ?
 */
const ENCODED_DELIMITER = '\\\\(?:[bfnrt]|u[0-9a-f]{4})|%(?:0[9ad]|2[02689cf]|3[a-f]|5[bd])';
const BEGIN = `(?:(?<!${LONGER_ADDRESS})|(?<=${ENCODED_DELIMITER}))`;

function toErasedAddress(address: string, placeholder: string): ErasedAddress {
  const [local = '', domain = ''] = address.split('@');
  const locals = spellingsOf(local);
  // Stored addresses are as customers wrote them, so their domain may be in Unicode.
  const domains = [...new Set([domain, domainToUnicode(domain)].flatMap(spellingsOf))];
  const spellings = locals.flatMap((name) => domains.flatMap((host) => [`${name}@${host}`, `${name}%40${host}`]));
  const [anyLocal, anyDomain] = [anyOf(locals), anyOf(domains)];
  return {
    address,
    placeholder,
    likePatterns: spellings.map((spelling) => `%${escapeLike(spelling)}%`),
    localPattern: `%${escapeLike(local)}@%`,
    // In form encoding, + is a space.
    pattern: `(?:${BEGIN}${anyLocal}(?:@|%40)|(?<=\\+)${anyLocal}%40)${anyDomain}(?![A-Za-z0-9-]|\\.[A-Za-z0-9])`,
  };
}

/** Returns a part of an address in lower case, as it is and as in a URL: percent-encoded, and in form encoding. */
function spellingsOf(part: string): string[] {
  const formEncoded = new URLSearchParams({ '': part }).toString().slice(1);
  return [...new Set([part, encodeURIComponent(part).toLowerCase(), formEncoded.toLowerCase()])];
}

/** Returns a regular expression that matches any of the texts literally. */
function anyOf(texts: readonly string[]): string {
  return `(?:${texts.map((text) => text.replace(/[^\p{L}\p{M}\p{N}]/gu, '\\$&')).join('|')})`;
}

function escapeLike(text: string): string {
  return text.replace(/[%_\\]/g, '\\$&');
}

/** Erases an address completely. @returns the sum of the reports of all calls */
export async function eraseRecipientCompletely(
  deps: ErasureDeps,
  orgId: string,
  email: string,
): Promise<ErasureReport> {
  const total = { ...EMPTY_REPORT };
  let position: ErasurePosition | null = null;
  do {
    const part: Awaited<ReturnType<typeof eraseRecipient>> = await eraseRecipient(deps, orgId, email, position);
    for (const name of Object.keys(total) as (keyof ErasureReport)[]) total[name] += part.report[name];
    position = part.next;
  } while (position);
  return total;
}

/** Parses a position. @returns undefined for invalid text */
export function parsePosition(phase: string, after: string): ErasurePosition | undefined {
  const parsed = PHASES.find((name) => name === phase);
  return parsed && { phase: parsed, after };
}
