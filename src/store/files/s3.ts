import type { Readable } from 'node:stream';
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import { chunksOf } from '../../lib/group.ts';
import { FilesNotRemoved, type FileStore, guarded, isOfKind, requireFileId } from './file-store.ts';

/** S3's own limit. */
const MAX_KEYS_PER_DELETE = 1_000;
/** A store that hangs must not delay requests for longer than clients wait. */
const TIMEOUTS_MS = { connectionTimeout: 3_000, requestTimeout: 20_000, socketTimeout: 20_000 };

/**
 * Stores files in S3 or a compatible server. The SDK finds credentials as every AWS tool does: environment, profile, role. It is
 * loaded on demand, because it is large and most installations do not use it.
 */
export async function s3Store({ host: Bucket, pathname, searchParams }: URL): Promise<FileStore> {
  const path = decodeURIComponent(pathname).replace(/^\/+|\/+$/g, '');
  const prefix = path === '' ? '' : `${path}/`;
  const sdk = await import('@aws-sdk/client-s3');
  const client = new sdk.S3Client(configuration(searchParams));
  const keyOf = (id: string) => {
    requireFileId(id);
    return prefix + id;
  };

  return guarded({
    async put(id, content) {
      await client.send(new sdk.PutObjectCommand({ Bucket, Key: keyOf(id), Body: content }));
    },
    async open(id) {
      try {
        const { Body } = await client.send(new sdk.GetObjectCommand({ Bucket, Key: keyOf(id) }));
        // The SDK returns a Node stream in Node.
        return Body as Readable;
      } catch (error) {
        if (error instanceof sdk.NoSuchKey) return undefined;
        throw error;
      }
    },
    async remove(ids) {
      const failures = [];
      for (const chunk of chunksOf(ids, MAX_KEYS_PER_DELETE)) {
        const Objects = chunk.map((id) => ({ Key: keyOf(id) }));
        const { Errors } = await client.send(
          new sdk.DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }),
        );
        failures.push(...(Errors ?? []));
      }
      const [first] = failures;
      if (!first) return;
      const cause = new Error(`${first.Code ?? 'an error'} for ${first.Key ?? 'an object'}`);
      const keys = new Set(failures.map(({ Key }) => Key));
      const notRemoved = ids.filter((id) => keys.has(keyOf(id)));
      // Some servers omit the key or encode it. Then it is unknown which files still exist.
      throw notRemoved.length === keys.size ? new FilesNotRemoved(notRemoved, cause) : cause;
    },
    async list(kind, from) {
      const { Contents, NextContinuationToken } = await client.send(
        new sdk.ListObjectsV2Command({
          Bucket,
          Prefix: `${prefix}${kind}_`,
          ...(from !== null && { ContinuationToken: from }),
        }),
      );
      const names = (Contents ?? []).map(({ Key = '' }) => Key.slice(prefix.length));
      return { ids: names.filter((id) => isOfKind(id, kind)), next: NextContinuationToken ?? null };
    },
    async check() {
      await client.send(new sdk.HeadBucketCommand({ Bucket }));
    },
  });
}

function configuration(parameters: URLSearchParams): S3ClientConfig {
  const [endpoint, region] = [parameters.get('endpoint'), parameters.get('region')];
  return {
    requestHandler: TIMEOUTS_MS,
    // Servers other than Amazon's need the bucket in the path instead of the host name.
    ...(endpoint !== null && { endpoint, forcePathStyle: true, region: 'us-east-1' }),
    ...(region !== null && { region }),
  };
}
