import type { Readable } from 'node:stream';

/**
 * Where the contents of attachments are. A file is known by the id of its attachment, in our own letters, so no name
 * that a caller chose ever becomes a path. Every function throws FileStoreUnavailable when the store fails it.
 */
export interface FileStore {
  /** Keeps a file; it outlives a crash of the machine from when this resolves. */
  readonly put: (id: string, content: Buffer) => Promise<void>;
  /** A file as a stream; undefined when there is none. */
  readonly open: (id: string) => Promise<Readable | undefined>;
  /** Deletes files; those that are not there count as deleted. */
  readonly remove: (ids: readonly string[]) => Promise<void>;
  /** Some of the ids that it holds and where to go on for more, in no order; null is the beginning and the end. */
  readonly list: (from: string | null) => Promise<{ readonly ids: readonly string[]; readonly next: string | null }>;
  /** Makes sure that files can be put here. */
  readonly check: () => Promise<void>;
}

/** The store cannot do what it was asked now, and may later: full, gone, refusing us. */
export class FileStoreUnavailable extends Error {
  constructor(cause: unknown) {
    super('the attachment store failed', { cause });
    this.name = 'FileStoreUnavailable';
  }
}

const ID = /^att_[0-9a-z]{26}$/;

/** Whether a name in the store is one of ours. */
export function isFileId(name: string): boolean {
  return ID.test(name);
}

/** @throws for what is not the id of an attachment, before it becomes part of a path */
export function requireFileId(id: string): void {
  if (!isFileId(id)) throw new Error('a file is named by the id of its attachment');
}

/** The same store, whose failures are FileStoreUnavailable. */
export function guarded(store: FileStore): FileStore {
  const guard =
    <A extends unknown[], R>(work: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      try {
        return await work(...args);
      } catch (error) {
        throw new FileStoreUnavailable(error);
      }
    };
  const { put, open, remove, list, check } = store;
  return { put: guard(put), open: guard(open), remove: guard(remove), list: guard(list), check: guard(check) };
}
