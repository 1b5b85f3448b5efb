import { fileURLToPath } from 'node:url';
import { diskStore } from './disk.ts';
import type { FileStore } from './file-store.ts';
import { s3Store } from './s3.ts';

/**
 * The store that a location names: `file:<folder>`, or `s3://bucket/prefix` with, for servers that are not Amazon's,
 * `?endpoint=https://…` and `&region=…`. Nothing is asked of it yet.
 * @throws when the location is neither
 */
export async function openFileStore(location: string): Promise<FileStore> {
  const folder = /^file:(.+)$/s.exec(location)?.[1];
  if (folder !== undefined) return diskStore(folder.startsWith('//') ? fileURLToPath(location) : folder);
  const url = new URL(location);
  if (url.protocol !== 's3:' || url.host === '')
    throw new Error('an attachment store is file:<folder> or s3://bucket/prefix');
  return s3Store(url);
}
