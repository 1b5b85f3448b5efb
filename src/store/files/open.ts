import { fileURLToPath } from 'node:url';
import { diskStore } from './disk.ts';
import type { FileStore } from './file-store.ts';
import { s3Store } from './s3.ts';

/**
 * Opens the store at a location: `file:<folder>`, or `s3://bucket/prefix` with `?endpoint=https://…` and `&region=…` for servers
 * other than Amazon's. Does not connect yet.
 * @throws for any other location
 */
export async function openFileStore(location: string): Promise<FileStore> {
  const folder = /^file:(.+)$/s.exec(location)?.[1];
  if (folder !== undefined) return diskStore(folder.startsWith('//') ? fileURLToPath(location) : folder);
  const url = new URL(location);
  if (url.protocol !== 's3:' || url.host === '')
    throw new Error('an attachment store is file:<folder> or s3://bucket/prefix');
  return s3Store(url);
}
