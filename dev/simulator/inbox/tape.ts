import { closeSync, fstatSync, ftruncateSync, openSync, readSync, rmSync, writeSync } from 'node:fs';

/**
 * Bytes that are only ever appended to. Every call is synchronous: a write reaches the system's cache, which outlives a
 * killed process, before the provider's answer is given, and takes some ten microseconds.
 */
export interface Tape {
  readonly size: number;
  /** Writes all of it, or nothing and throws. */
  append(bytes: Buffer): void;
  read(offset: number, length: number): Buffer;
  /** Cuts off everything from `size` on. */
  truncate(size: number): void;
  close(): void;
  /** Closes it and forgets its bytes. */
  remove(): void;
}

/** A tape that is a file, made if need be. */
export function fileTape(path: string): Tape {
  const file = openSync(path, 'a+');
  let { size } = fstatSync(file);
  const truncate = (to: number) => {
    ftruncateSync(file, to);
    size = to;
  };
  return {
    get size() {
      return size;
    },
    append(bytes) {
      const before = size;
      try {
        for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done);
      } catch (error) {
        truncate(before);
        throw error;
      }
      size += bytes.length;
    },
    read(offset, length) {
      const bytes = Buffer.allocUnsafe(length);
      let done = 0;
      while (done < length) {
        const read = readSync(file, bytes, done, length - done, offset + done);
        if (read === 0) throw new RangeError(`The file ends before byte ${offset + length}.`);
        done += read;
      }
      return bytes;
    },
    truncate,
    close: () => closeSync(file),
    remove() {
      closeSync(file);
      rmSync(path, { force: true });
    },
  };
}

/** A tape in memory, for tests. */
export function memoryTape(): Tape {
  let bytes = Buffer.alloc(0);
  let size = 0;
  return {
    get size() {
      return size;
    },
    append(more) {
      if (size + more.length > bytes.length) {
        const larger = Buffer.allocUnsafe(Math.max(2 * bytes.length, size + more.length, 65_536));
        bytes.copy(larger, 0, 0, size);
        bytes = larger;
      }
      more.copy(bytes, size);
      size += more.length;
    },
    read: (offset, length) => Buffer.from(bytes.subarray(offset, offset + length)),
    truncate(to) {
      size = to;
    },
    close: () => undefined,
    remove: () => undefined,
  };
}
