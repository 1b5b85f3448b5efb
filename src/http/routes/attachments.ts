import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Attachment } from '../../domain/email/attachments.ts';
import { requireFound, ServiceError } from '../../domain/errors.ts';
import { LINK_LIFE_SECONDS } from '../../domain/file-links.ts';
import { findAttachments, findDownload, secondsFromNow } from '../../store/emails/attachments.ts';
import type { RouteDeps } from '../deps.ts';
import { route } from '../route.ts';
import {
  AttachmentList,
  AttachmentParams,
  AttachmentWithLink,
  DownloadQuery,
  FileContent,
} from '../schemas/attachments.ts';
import { errorResponses } from '../schemas/common.ts';
import { EmailParams } from '../schemas/emails.ts';

export const listAttachments = route('listAttachments', 'List the attachments of an email', {
  description: 'Files are kept for 30 days after the send. Request them again for new links.',
  params: EmailParams,
  response: { 200: AttachmentList },
  handler: async (deps, request) => ({ attachments: await linkedAttachments(deps, request, request.params.id) }),
});

export const getAttachment = route('getAttachment', 'Get an attachment of an email', {
  description: 'One attachment with a new link.',
  params: AttachmentParams,
  response: { 200: AttachmentWithLink },
  handler: async (deps, request) => {
    const { id, attachmentId } = request.params;
    const [attachment] = await linkedAttachments(deps, request, id, attachmentId);
    if (!attachment) throw new ServiceError('not_found', 'this email has no attachment with this id');
    return attachment;
  },
});

export const downloadAttachment = route('downloadAttachment', 'Download an attachment', {
  description: 'The target of `download_url`. Needs no API key.',
  params: AttachmentParams,
  querystring: DownloadQuery,
  response: {
    200: FileContent,
    ...errorResponses(404, 422, 500, 503),
  },
  handler: async ({ pool, files, downloadLinks }, { method, params: { id, attachmentId }, query }, reply) => {
    const expires = downloadLinks.read([id, attachmentId], query);
    const file = expires === undefined ? undefined : await findDownload(pool, id, attachmentId, expires);
    const content = file && (method === 'HEAD' ? Readable.from([]) : await files.open(file.id));
    // The error is the same for a forged link, an expired link and a deleted file.
    if (!content) throw fileNotFound();
    return sendFile(reply, file, content);
  },
});

export function fileNotFound(): ServiceError {
  return new ServiceError('not_found', 'this link has expired or is not valid; request a new one from the API');
}

/**
 * Sends a file as a download. Browsers must not display it, run it or guess its type in our origin.
 * @param file without `size` if the size is unknown in a response to HEAD
 */
export function sendFile(
  reply: FastifyReply,
  { filename, content_type, size }: Pick<Attachment, 'filename' | 'content_type'> & Partial<Pick<Attachment, 'size'>>,
  content: Readable,
): FastifyReply {
  if (size !== undefined) reply.header('content-length', size);
  return reply
    .headers({
      'content-type': content_type,
      'content-disposition': disposition(filename),
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'cache-control': 'private, no-store',
    })
    .send(content);
}

/** Content-Disposition by RFC 6266: the name in UTF-8 (RFC 8187), and in ASCII for clients without support for that. */
function disposition(filename: string): string {
  const plain = filename.replace(/[^\x20-\x7E]|["%\\]/gu, '_');
  const encoded = encodeURIComponent(filename).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

/** Finds files of an email and adds download links, all with the same expiry. */
async function linkedAttachments(deps: RouteDeps, request: FastifyRequest, emailId: string, attachmentId?: string) {
  const { pool, publicUrl, downloadLinks } = deps;
  const attachments = requireFound(await findAttachments(pool, request.orgId, emailId, attachmentId), 'email');
  if (attachments.length === 0) return [];
  const expires = await secondsFromNow(pool, LINK_LIFE_SECONDS);
  const base = publicUrl ?? addressOf(request);
  return attachments.map(({ kept, ...attachment }) => ({
    ...attachment,
    download_url: kept ? base + downloadLinks.make([emailId, attachment.id], expires) : null,
  }));
}

/** Returns the local address of the caller's connection, because the Host header is not trustworthy. */
export function addressOf({ socket: { localAddress = '', localPort } }: FastifyRequest): string {
  const address = localAddress.replace(/^::ffff:/, '');
  return `http://${address.includes(':') ? `[${address}]` : address}:${localPort}`;
}
