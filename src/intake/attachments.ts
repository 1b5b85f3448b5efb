import {
  type Attachment,
  type AttachmentRequest,
  blockedContent,
  blockedFile,
  contentTypeOf,
  decodedSize,
  decodeBase64InSteps,
} from '../domain/email/attachments.ts';
import { awaitAll } from '../lib/await-all.ts';
import { makeSemaphore } from '../lib/semaphore.ts';
import { formatNumber } from '../lib/text.ts';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../lib/ids.ts';
import { ATTACHMENTS_BYTES } from '../domain/limits.ts';
import { type Budget, openBudget, type PublicFetch } from '../public-fetch/fetch.ts';
import { Unfetchable } from '../public-fetch/unfetchable.ts';
import { deleteReservations, releaseReservedBytes, reserveFiles } from '../store/files/reservations.ts';
import type { FileStore } from '../store/files/file-store.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { limitExceeded } from '../accounts/organization-limits.ts';
import { quotaExceeded } from './quota.ts';
import { startTimeSlices } from './time-slices.ts';

/** The maximum bytes of fetched files in the memory of one process, and the share of one organization. */
const MAX_FETCHED_BYTES = 5 * ATTACHMENTS_BYTES;
const MAX_FETCHED_BYTES_PER_ORGANIZATION = 2 * ATTACHMENTS_BYTES;
const BYTES_PER_MB = 1_048_576;

/** The files of one email, with the checks that precede storing them. */
export interface Upload {
  readonly orgId: string;
  readonly requests: readonly AttachmentRequest[];
  /** The number of copies that count against the monthly quota and the rate limit. */
  readonly cost: number;
  /** Throws if a limit refuses the email. Called after all files are valid and before any file is stored. */
  readonly admit: () => Promise<void>;
}

/**
 * Validates the files of an email, fetches remote ones, stores all of them and runs `store`, which stores the email. If `store`
 * refuses the email, its files are deleted.
 * @throws ServiceError invalid_attachment, whose message names the file; unavailable if too many files are being fetched;
 * quota_exceeded; limit_exceeded; the errors of `admit` and `store`; FileStoreUnavailable
 */
export type WithFiles = <T>(upload: Upload, store: (files: readonly Attachment[]) => Promise<T>) => Promise<T>;

interface FileDeps {
  readonly pool: Pool;
  readonly files: FileStore;
  readonly fetchPublic: PublicFetch;
  /** The maximum bytes of stored files of one organization; 0 means no limit. */
  readonly maxStoredBytes: number;
}

/** A file that is not stored yet, with its index in the request. */
interface IncomingFile {
  readonly index: number;
  readonly request: AttachmentRequest;
}

export function makeWithFiles(deps: FileDeps): WithFiles {
  const { files, fetchPublic } = deps;
  const memory = makeSemaphore(MAX_FETCHED_BYTES, MAX_FETCHED_BYTES_PER_ORGANIZATION);

  const storeAll = async (upload: Upload): Promise<Attachment[]> => {
    const { orgId } = upload;
    const incoming = upload.requests.map((request, index): IncomingFile => ({ index, request }));
    incoming.forEach(refuseBlocked);
    const { budget, release } = openBudget(memory, orgId, ATTACHMENTS_BYTES);
    try {
      const contents = new Map<number, Buffer>();
      for (const file of incoming) {
        if (file.request.content !== null) contents.set(file.index, await decode(file, file.request.content, budget));
      }
      for (const [index, content] of await fetchAll(incoming, fetchPublic, budget)) contents.set(index, content);
      const attachments = incoming.map(({ index, request }) => toAttachment(request, contents.get(index) as Buffer));
      await upload.admit();
      await reserve(deps, upload, attachments);
      try {
        // Wait for all writes, even if one fails: their contents occupy memory until then, and `release` returns it.
        await awaitAll(attachments.map(({ id }, index) => files.put(id, contents.get(index) as Buffer)));
      } catch (error) {
        const ids = attachments.map(({ id }) => id);
        await releaseReservedBytes(deps.pool, ids).catch(() => undefined);
        throw error;
      }
      return attachments;
    } finally {
      release();
    }
  };

  return async (upload, store) => {
    const attachments = await storeAll(upload);
    try {
      return await store(attachments);
    } catch (error) {
      // After any other error the email may have been stored. Upkeep deletes orphaned files an hour later.
      if (error instanceof ServiceError) await discard(deps, attachments).catch(() => undefined);
      throw error;
    }
  };
}

/**
 * Records the files before they are written, so that upkeep can delete files without an email.
 * @throws ServiceError quota_exceeded or limit_exceeded
 */
async function reserve(
  { pool, maxStoredBytes }: FileDeps,
  { orgId, cost }: Upload,
  attachments: readonly Attachment[],
): Promise<void> {
  const { refusal } = await reserveFiles(pool, orgId, attachments, { maxStoredBytes, cost });
  if (refusal === 'quota') throw await quotaExceeded(pool, orgId, cost);
  if (refusal === null) return;
  const limit = `${formatNumber(maxStoredBytes / BYTES_PER_MB)} MB`;
  throw limitExceeded(`an organization may have ${limit} of stored attachments; these would be more`);
}

async function discard({ pool, files }: FileDeps, attachments: readonly Attachment[]): Promise<void> {
  const ids = attachments.map(({ id }) => id);
  await files.remove(ids);
  await deleteReservations(pool, ids);
}

function refuseBlocked(file: IncomingFile): void {
  const blocked = blockedFile(file.request);
  if (blocked) throw invalid(file, blocked.field, blocked.message);
}

async function decode(file: IncomingFile, text: string, budget: Budget): Promise<Buffer> {
  budget.left -= decodedSize(text);
  if (budget.left < 0) {
    throw invalid(file, 'content', `makes the attachments larger than ${ATTACHMENTS_BYTES / BYTES_PER_MB} MB together`);
  }
  const decoding = decodeBase64InSteps(text);
  const yieldIfDue = startTimeSlices();
  let step = decoding.next();
  for (; !step.done; step = decoding.next()) await yieldIfDue();
  if (!step.value) {
    throw invalid(file, 'content', 'is not base64: the standard alphabet with padding and without white space');
  }
  return requireAllowedContent(file, 'content', step.value);
}

/** Fetches all files concurrently, so they share one deadline. The first failure aborts the others. */
async function fetchAll(
  incoming: readonly IncomingFile[],
  fetchPublic: PublicFetch,
  budget: Budget,
): Promise<Map<number, Buffer>> {
  const failed = new AbortController();
  const contents = new Map<number, Buffer>();
  const fetchOne = async (file: IncomingFile, path: string): Promise<void> => {
    try {
      contents.set(file.index, requireAllowedContent(file, 'path', await fetchPublic(path, budget, failed.signal)));
    } catch (error) {
      const isReported = error instanceof Unfetchable;
      failed.abort(isReported ? invalid(file, 'path', `cannot be fetched: ${error.message}`) : error);
    }
  };
  await Promise.all(
    incoming.flatMap((file) => (file.request.path === null ? [] : [fetchOne(file, file.request.path)])),
  );
  failed.signal.throwIfAborted();
  return contents;
}

function requireAllowedContent(file: IncomingFile, field: 'content' | 'path', content: Buffer): Buffer {
  const blocked = blockedContent(content);
  if (blocked !== undefined) throw invalid(file, field, blocked);
  return content;
}

function toAttachment(request: AttachmentRequest, content: Buffer): Attachment {
  const { filename, content_id } = request;
  const id = newId('att');
  return { id, filename, content_type: contentTypeOf(request), size: content.length, content_id };
}

function invalid({ index, request }: IncomingFile, field: keyof AttachmentRequest, message: string): ServiceError {
  return new ServiceError('invalid_attachment', `"${request.filename}" ${message}`, `attachments.${index}.${field}`);
}
