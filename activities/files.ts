import type { Logger } from 'pino';
import type { Attachment } from '../src/domain/attachments.ts';
import { makeByteLimit } from '../src/domain/byte-limit.ts';
import type { OutgoingFile } from '../src/domain/outgoing.ts';
import type { FileStore } from '../src/store/files/file-store.ts';

/** Files that were read, by the ids of their emails; `lost` when the store does not have them as they were put there. */
export type FilesOfEmails = ReadonlyMap<string, readonly OutgoingFile[] | 'lost'>;

/** Reads the files of emails that are about to leave. */
export interface EmailFiles {
  /**
   * Reads the files of one email and has them used; they are in memory until `use` is done. Waits while too much is in
   * memory already.
   * @returns undefined when they cannot be read now
   */
  readonly read: <T>(
    emailId: string,
    attachments: readonly Attachment[],
    use: (files: FilesOfEmails) => Promise<T>,
  ) => Promise<T | undefined>;
}

/** Bytes of files that one worker holds at a time. On its way out each is in memory up to four times over. */
const IN_MEMORY = 96 * 1_048_576;
/** Milliseconds. */
const READ_WITHIN = 30_000;

export function makeEmailFiles(store: FileStore, log: Logger): EmailFiles {
  const memory = makeByteLimit(IN_MEMORY);
  return {
    async read(emailId, attachments, use) {
      const release = await memory.take(attachments.reduce((sum, { size }) => sum + size, 0));
      try {
        const files = await readAll(store, attachments).catch((error: unknown) => {
          log.error({ err: error, email: emailId }, 'the attachments of an email cannot be read');
          return error instanceof Lost ? 'lost' : undefined;
        });
        return files && (await use(new Map([[emailId, files]])));
      } finally {
        release();
      }
    },
  };
}

/** Not there, or not whole. */
class Lost extends Error {}

async function readAll(store: FileStore, attachments: readonly Attachment[]): Promise<OutgoingFile[]> {
  const files: OutgoingFile[] = [];
  const tooLate = AbortSignal.timeout(READ_WITHIN);
  for (const attachment of attachments) files.push(await readOne(store, attachment, tooLate));
  return files;
}

async function readOne(store: FileStore, attachment: Attachment, tooLate: AbortSignal): Promise<OutgoingFile> {
  const { id, filename, content_type: contentType, content_id: contentId, size } = attachment;
  const stream = await store.open(id);
  if (!stream) throw new Lost(`the file ${id} is not in the attachment store`);
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    tooLate.throwIfAborted();
    chunks.push(chunk);
  }
  const content = Buffer.concat(chunks);
  if (content.length !== size) throw new Lost(`the file ${id} has ${content.length} bytes, not ${size}`);
  return { filename, contentType, contentId, content };
}
