import { Readable } from 'node:stream';
import { ServiceError } from '../../domain/errors.ts';
import { Unfetchable } from '../../public-fetch/unfetchable.ts';
import { findInboundMedia } from '../../store/chat/inbound.ts';
import { onceClosed } from '../../lib/closed-signal.ts';
import { route } from '../route.ts';
import { DownloadQuery, FileContent } from '../schemas/attachments.ts';
import { InboundParams } from '../schemas/chatapp.ts';
import { errorResponses } from '../schemas/common.ts';
import { fileNotFound, sendFile } from './attachments.ts';

/** Downloads the file of a received message from the provider, with the number's token, which the caller does not have. */
export const download = route('downloadChatMedia', "Download the file of a user's message", {
  description: 'The target of `media.url` of `chatapp.received`. Valid for seven days; needs no API key.',
  params: InboundParams,
  querystring: DownloadQuery,
  response: {
    200: FileContent,
    ...errorResponses(404, 422, 429, 500, 503),
  },
  handler: async ({ pool, mediaLinks, fetchMedia }, { method, params: { id }, query }, reply) => {
    const expires = mediaLinks.read([id], query);
    const file = expires === undefined ? undefined : await findInboundMedia(pool, id, expires);
    if (!file) throw fileNotFound();
    const head = { filename: file.filename ?? id, content_type: file.content_type };
    // The size is unknown without a request to the provider.
    if (method === 'HEAD') return sendFile(reply, head, Readable.from([]));
    const { content, release } = await fetchMedia(file).catch((error: unknown) => {
      throw error instanceof Unfetchable ? mediaUnavailable() : error;
    });
    onceClosed(reply, release);
    return sendFile(reply, { ...head, size: content.length }, Readable.from([content]));
  },
  options: { networkLimit: 'requests' },
});

function mediaUnavailable(): ServiceError {
  return new ServiceError('unavailable', 'the provider does not deliver this file now; try again later');
}
