import { Readable } from 'node:stream';
import { Type } from 'typebox';
import { makeMediaLinks } from '../../domain/chat/media-links.ts';
import { ServiceError } from '../../domain/errors.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';
import { Unfetchable } from '../../public-fetch/unfetchable.ts';
import { findInboundMedia, type StoredMedia } from '../../store/chat/inbound.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { DownloadQuery } from '../schemas/attachments.ts';
import { InboundParams } from '../schemas/chatapp.ts';
import { errorResponses } from '../schemas/common.ts';
import { noFile, sendFile } from './attachments.ts';
import { type Route, route } from '../route.ts';

/**
 * Fetches a file from its provider. The caller releases the memory when the file has been sent.
 * @throws Unfetchable, FetchBusy
 */
export type FetchMedia = (media: StoredMedia) => Promise<{ readonly content: Buffer; readonly release: () => void }>;

export interface ChatMediaDeps {
  readonly pool: Pool;
  readonly secretKey: SecretKeys;
  readonly fetchMedia: FetchMedia;
}

/** Downloads the file of a user's message from the provider with the number's token, which the receiver does not have. */
export function download({ pool, secretKey, fetchMedia }: ChatMediaDeps): Route {
  const links = makeMediaLinks(secretKey);
  const media = route(
    {
      tags: ['Chat-app messages'],
      operationId: 'downloadChatMedia',
      summary: "Download the file of a user's message",
      description: 'Where `media.url` of `chatapp.received` leads. Valid for seven days; needs no API key.',
      params: InboundParams,
      querystring: DownloadQuery,
      response: {
        200: Type.Unsafe<unknown>({ type: 'string', format: 'binary', description: 'The file' }),
        ...errorResponses(404, 422, 500, 503),
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const { expires, signature } = request.query;
      const isOurs = links.verify(id, expires, signature);
      const file = isOurs ? await findInboundMedia(pool, id, Number(expires)) : undefined;
      if (!file) throw noFile();
      const { content, release } = await fetchMedia(file).catch((error: unknown) => {
        throw error instanceof Unfetchable ? notFetched() : error;
      });
      reply.raw.once('close', release);
      const { content_type } = file;
      return sendFile(
        reply,
        { filename: file.filename ?? id, content_type, size: content.length },
        Readable.from([content]),
      );
    },
  );
  return { ...media, networkLimit: 'requests' };
}

function notFetched(): ServiceError {
  return new ServiceError('unavailable', 'the provider does not deliver this file now; try again later');
}
