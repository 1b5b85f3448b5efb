import type { Readable } from 'node:stream';

/** Contents of attachments, and records of erasures (`erasure-records.ts`). It is the prefix of the ids. */
export type FileKind = 'att' | 'era';

/**
 * Stores the contents of attachments and other files. An id identifies each file, so that no text of a customer becomes a path. Every function throws FileStoreUnavailable if the store fails.
 */
export interface FileStore {
  /** Stores a file. Once this resolves, the file survives a crash of the machine. */
  readonly put: (id: string, content: Buffer) => Promise<void>;
  /** Opens a file as a stream; undefined if it does not exist. A folder that was never written to counts as unavailable. */
  readonly open: (id: string) => Promise<Readable | undefined>;
  /** Deletes files. Files that do not exist count as deleted. Throws FilesNotRemoved if only some could be deleted. */
  readonly remove: (ids: readonly string[]) => Promise<void>;
  /** Lists ids of a kind in no particular order, with the cursor of the next page; null is the start and the end. */
  readonly list: (
    kind: FileKind,
    from: string | null,
  ) => Promise<{ readonly ids: readonly string[]; readonly next: string | null }>;
  /** Checks that files can be stored. */
  readonly check: () => Promise<void>;
}

/** The store has failed for a reason that may pass: it is full, unreachable or refuses access. */
export class FileStoreUnavailable extends Error {
  constructor(cause: unknown) {
    super('the attachment store failed', { cause });
    this.name = 'FileStoreUnavailable';
  }
}

/** Some files could not be deleted; all others were. */
export class FilesNotRemoved extends FileStoreUnavailable {
  readonly ids: readonly string[];
  constructor(ids: readonly string[], cause: unknown) {
    super(cause);
    this.name = 'FilesNotRemoved';
    this.ids = ids;
  }
}

const ID = /^(?:att|era)_[0-9a-z]{26}$/;

/** Returns true for the id of a file of a kind; other names in the store are not ours. */
export function isOfKind(name: string, kind: FileKind): boolean {
  return name.startsWith(kind) && ID.test(name);
}

/** Throws unless a text is the id of a file. Call it before the text becomes part of a path. */
export function requireFileId(id: string): void {
  if (!ID.test(id)) throw new Error('a file is named by its id');
}

/** Wraps a store so that its failures become FileStoreUnavailable. */
export function guarded(store: FileStore): FileStore {
  const guard =
    <A extends unknown[], R>(work: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      try {
        return await work(...args);
      } catch (error) {
        throw error instanceof FileStoreUnavailable ? error : new FileStoreUnavailable(error);
      }
    };
  const { put, open, remove, list, check } = store;
  return { put: guard(put), open: guard(open), remove: guard(remove), list: guard(list), check: guard(check) };
}
