import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { FileStore } from '../../store/files/file-store.ts';
import { openFileStore } from '../../store/files/open.ts';

/** The store that the settings name, or the folder `attachments` in SENDWRIGHT_HOME. */
export function openAttachmentStore(config: Config): Promise<FileStore> {
  return openFileStore(config.ATTACHMENT_STORE ?? `file:${join(config.SENDWRIGHT_HOME, 'attachments')}`);
}

/** Warns of a store that does not work now: all email without attachments goes on, and the store may come back. */
export function checkAttachmentStore(files: FileStore, log: Logger): void {
  files.check().catch((error: unknown) => log.warn({ err: error }, 'the attachment store cannot be used'));
}
