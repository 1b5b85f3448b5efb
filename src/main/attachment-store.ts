import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { FileStore } from '../store/files/file-store.ts';
import { openFileStore } from '../store/files/open.ts';

/**
 * The store that the settings name, or the folder `attachments` in SENDWRIGHT_HOME. One that does not work now is a
 * warning: all email without attachments goes on, and the store may come back.
 */
export async function openAttachmentStore(config: Config, log: Logger): Promise<FileStore> {
  const location = config.ATTACHMENT_STORE ?? `file:${join(config.SENDWRIGHT_HOME, 'attachments')}`;
  const files = await openFileStore(location);
  files.check().catch((error: unknown) => log.warn({ err: error }, 'the attachment store cannot be used'));
  return files;
}
