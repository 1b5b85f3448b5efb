import {
  type Attachment,
  type AttachmentRequest,
  blockedContent,
  blockedFile,
  contentTypeOf,
  decodedSize,
  decodingBase64,
} from '../domain/attachments.ts';
import { makeByteLimit, type Release } from '../domain/byte-limit.ts';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../domain/ids.ts';
import { ATTACHMENTS_BYTES } from '../domain/limits.ts';
import type { Budget, PublicFetch } from '../public-fetch/fetch.ts';
import { Unfetchable } from '../public-fetch/unfetchable.ts';
import type { FileStore } from '../store/files/file-store.ts';
import { takeTurns } from './turns.ts';

/** Bytes of fetched files that one process holds in memory, and those of one organization among them. */
const FETCHED_BYTES = 5 * ATTACHMENTS_BYTES;
const FETCHED_BYTES_OF_ONE = 2 * ATTACHMENTS_BYTES;

/**
 * Makes sure of the files of an email, fetches those that are elsewhere and puts them into the store. Nothing refers to
 * them yet; those to which nothing ever will are swept.
 * @throws ServiceError invalid_attachment, whose message names the file; unavailable when too many files are being
 * fetched; FileStoreUnavailable
 */
export type KeepFiles = (orgId: string, requests: readonly AttachmentRequest[]) => Promise<Attachment[]>;

/** One file on its way, by its place in the request. */
interface Incoming {
  readonly index: number;
  readonly request: AttachmentRequest;
}

export function makeKeepFiles(files: FileStore, fetchPublic: PublicFetch): KeepFiles {
  const memory = makeByteLimit(FETCHED_BYTES, FETCHED_BYTES_OF_ONE);
  return async (orgId, requests) => {
    const incoming = requests.map((request, index): Incoming => ({ index, request }));
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
      return await Promise.all(
        incoming.map(({ index, request }) => keep(files, request, contents.get(index) as Buffer)),
      );
    } finally {
      for (const release of releases) release();
    }
  };
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

async function keep(files: FileStore, request: AttachmentRequest, content: Buffer): Promise<Attachment> {
  const id = newId('att', Date.now());
  await files.put(id, content);
  const { filename, content_id } = request;
  return { id, filename, content_type: contentTypeOf(request), size: content.length, content_id };
}

function invalid({ index, request }: Incoming, field: keyof AttachmentRequest, message: string): ServiceError {
  return new ServiceError('invalid_attachment', `"${request.filename}" ${message}`, `attachments.${index}.${field}`);
}
