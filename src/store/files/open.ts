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
  const { protocol, host: bucket, pathname, searchParams } = new URL(location);
  if (protocol !== 's3:' || bucket === '')
    throw new Error('an attachment store is file:<folder> or s3://bucket/prefix');
  const path = decodeURIComponent(pathname).replace(/^\/+|\/+$/g, '');
  return s3Store({
    bucket,
    prefix: path === '' ? '' : `${path}/`,
    endpoint: searchParams.get('endpoint') ?? undefined,
    region: searchParams.get('region') ?? undefined,
  });
}
