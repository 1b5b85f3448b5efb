import {
  type Attachment,
  type AttachmentRequest,
  blockedContent,
  blockedFile,
  contentTypeOf,
  decodedSize,
  decodingBase64,
} from '../domain/email/attachments.ts';
import { makeByteLimit, type Release } from '../lib/byte-limit.ts';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../domain/ids.ts';
import { ATTACHMENTS_BYTES } from '../domain/limits.ts';
import type { Budget, PublicFetch } from '../public-fetch/fetch.ts';
import { Unfetchable } from '../public-fetch/unfetchable.ts';
import { deleteReservations, reserveFiles } from '../store/files/reservations.ts';
import type { FileStore } from '../store/files/file-store.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { limitExceeded } from '../accounts/organization-limits.ts';
import { quotaExceeded } from './quota.ts';
import { takeTurns } from './turns.ts';

/** Bytes of fetched files that one process holds in memory, and those of one organization among them. */
const FETCHED_BYTES = 5 * ATTACHMENTS_BYTES;
const FETCHED_BYTES_OF_ONE = 2 * ATTACHMENTS_BYTES;
const BYTES_PER_MB = 1_048_576;

/** The files of one request, and what is checked before any of them is stored. */
export interface Upload {
  readonly orgId: string;
  readonly requests: readonly AttachmentRequest[];
  /** How much of the monthly quota the email takes. */
  readonly allowance: number;
  /** Refuses the request by throwing. Called when all files are valid, and before any is stored. */
  readonly admit: () => Promise<void>;
}

/**
 * Checks the files of an email, fetches those that are elsewhere, puts all into the store and runs `store`, which stores
 * the email that refers to them. Files of an email that is refused are removed.
 * @throws ServiceError invalid_attachment, whose message names the file; unavailable when too many files are being
 *   fetched; quota_exceeded; limit_exceeded; what `admit` and `store` throw; FileStoreUnavailable
 */
export type WithFiles = <T>(upload: Upload, store: (files: readonly Attachment[]) => Promise<T>) => Promise<T>;

export interface FileDeps {
  readonly pool: Pool;
  readonly files: FileStore;
  readonly fetchPublic: PublicFetch;
  /** Bytes of files that one organization may have in the store; 0 is no limit. */
  readonly maxStoredBytes: number;
}

/** One file on its way, by its place in the request. */
interface Incoming {
  readonly index: number;
  readonly request: AttachmentRequest;
}

export function makeWithFiles(deps: FileDeps): WithFiles {
  const { files, fetchPublic } = deps;
  const memory = makeByteLimit(FETCHED_BYTES, FETCHED_BYTES_OF_ONE);

  const keepAll = async (upload: Upload): Promise<Attachment[]> => {
    const { orgId } = upload;
    const incoming = upload.requests.map((request, index): Incoming => ({ index, request }));
    incoming.forEach(refuseBlocked);
    const releases: Release[] = [];
    const budget: Budget = {
      left: ATTACHMENTS_BYTES,
      holder: orgId,
      memory: {
        tryTake: (bytes) => {
          const release = memory.tryTake(bytes, orgId);
          if (release) releases.push(release);
          return release !== undefined;
        },
        take: async (bytes, signal) => releases.push(await memory.take(bytes, { signal, holder: orgId })),
      },
    };
    try {
      const contents = new Map<number, Buffer>();
      for (const file of incoming) {
        if (file.request.content !== null) contents.set(file.index, await decode(file, file.request.content, budget));
      }
      for (const [index, content] of await fetchAll(incoming, fetchPublic, budget)) contents.set(index, content);
      const described = incoming.map(({ index, request }) => describe(request, contents.get(index) as Buffer));
      await upload.admit();
      await reserve(deps, upload, described);
      await Promise.all(described.map(({ id }, index) => files.put(id, contents.get(index) as Buffer)));
      return described;
    } finally {
      for (const release of releases) release();
    }
  };

  return async (upload, store) => {
    const kept = await keepAll(upload);
    try {
      return await store(kept);
    } catch (error) {
      // After any other error the email may have been stored: upkeep decides that an hour later.
      if (error instanceof ServiceError) await discard(deps, kept).catch(() => undefined);
      throw error;
    }
  };
}

/**
 * Notes the files that are about to be written, so that upkeep removes those that no email comes to refer to.
 * @throws ServiceError quota_exceeded or limit_exceeded
 */
async function reserve(
  { pool, maxStoredBytes }: FileDeps,
  { orgId, allowance }: Upload,
  described: readonly Attachment[],
): Promise<void> {
  const { refusal } = await reserveFiles(pool, orgId, described, { maxStoredBytes, allowance });
  if (refusal === 'quota') throw await quotaExceeded(pool, orgId, allowance);
  if (refusal === null) return;
  const limit = `${(maxStoredBytes / BYTES_PER_MB).toLocaleString('en')} MB`;
  throw limitExceeded(`an organization may have ${limit} of stored attachments; these would be more`);
}

async function discard({ pool, files }: FileDeps, kept: readonly Attachment[]): Promise<void> {
  const ids = kept.map(({ id }) => id);
  await files.remove(ids);
  await deleteReservations(pool, ids);
}

function refuseBlocked(file: Incoming): void {
  const blocked = blockedFile(file.request);
  if (blocked) throw invalid(file, blocked.field, blocked.message);
}

async function decode(file: Incoming, text: string, budget: Budget): Promise<Buffer> {
  budget.left -= decodedSize(text);
  if (budget.left < 0) {
    throw invalid(file, 'content', `makes the attachments larger than ${ATTACHMENTS_BYTES / 1_048_576} MB together`);
  }
  const decoding = decodingBase64(text);
  const turn = takeTurns();
  let step = decoding.next();
  for (; !step.done; step = decoding.next()) await turn();
  if (!step.value) {
    throw invalid(file, 'content', 'is not base64: the standard alphabet with padding and without white space');
  }
  return checked(file, 'content', step.value);
}

/** All at the same time, so that together they take no longer than one may. The first that fails ends the others. */
async function fetchAll(
  incoming: readonly Incoming[],
  fetchPublic: PublicFetch,
  budget: Budget,
): Promise<Map<number, Buffer>> {
  const failed = new AbortController();
  const contents = new Map<number, Buffer>();
  const fetchOne = async (file: Incoming, path: string): Promise<void> => {
    try {
      contents.set(file.index, checked(file, 'path', await fetchPublic(path, budget, failed.signal)));
    } catch (error) {
      const isTold = error instanceof Unfetchable;
      failed.abort(isTold ? invalid(file, 'path', `cannot be fetched: ${error.message}`) : error);
    }
  };
  await Promise.all(
    incoming.flatMap((file) => (file.request.path === null ? [] : [fetchOne(file, file.request.path)])),
  );
  failed.signal.throwIfAborted();
  return contents;
}

function checked(file: Incoming, field: 'content' | 'path', content: Buffer): Buffer {
  const blocked = blockedContent(content);
  if (blocked !== undefined) throw invalid(file, field, blocked);
  return content;
}

function describe(request: AttachmentRequest, content: Buffer): Attachment {
  const { filename, content_id } = request;
  const id = newId('att', Date.now());
  return { id, filename, content_type: contentTypeOf(request), size: content.length, content_id };
}

function invalid({ index, request }: Incoming, field: keyof AttachmentRequest, message: string): ServiceError {
  return new ServiceError('invalid_attachment', `"${request.filename}" ${message}`, `attachments.${index}.${field}`);
}
