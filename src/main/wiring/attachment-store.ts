import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { FileStore } from '../../store/files/file-store.ts';
import { openFileStore } from '../../store/files/open.ts';

/** Opens the store of ATTACHMENT_STORE, by default the folder `attachments` in SENDWRIGHT_HOME. */
export function openAttachmentStore(config: Config): Promise<FileStore> {
  return openFileStore(config.ATTACHMENT_STORE ?? `file:${join(config.SENDWRIGHT_HOME, 'attachments')}`);
}

/**
 * Logs a warning if the store is unavailable. This is not fatal: email without attachments does not need it, and it may
 * recover.
 */
export function checkAttachmentStore(files: FileStore, log: Logger): void {
  files.check().catch((error: unknown) => log.warn({ err: error }, 'attachment store unavailable'));
}
