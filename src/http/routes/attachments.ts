import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Attachment } from '../../domain/email/attachments.ts';
import { ServiceError } from '../../domain/errors.ts';
import {
  findAttachments,
  findDownload,
  type ListedAttachment,
  secondsFromNow,
} from '../../store/emails/attachments.ts';
import type { FileStore } from '../../store/files/file-store.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { callerOf } from '../plugins/auth.ts';
import { LINK_LIFE_SECONDS, makeDownloadLinks } from '../../domain/email/download-links.ts';
import { route } from '../route.ts';
import { AttachmentList, AttachmentParams, AttachmentWithLink, DownloadQuery } from '../schemas/attachments.ts';
import { errorResponses } from '../schemas/common.ts';
import { EmailParams } from '../schemas/emails.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';

export interface AttachmentRoutesDeps {
  readonly pool: Pool;
  readonly files: FileStore;
  readonly secretKey: SecretKeys;
  /** The base of download links; without it, the address at which the caller reached this process. */
  readonly publicUrl: string | undefined;
}

const tags = ['Attachments'];

export function listAttachments(deps: AttachmentRoutesDeps) {
  const withLinks = linker(deps);
  return route(
    {
      tags,
      operationId: 'listAttachments',
      summary: 'List the attachments of an email',
      description: 'Files are kept until 30 days after the send. Ask again for a fresh link.',
      params: EmailParams,
      response: { 200: AttachmentList },
    },
    async (request) => {
      const { id } = request.params;
      const attachments = await findAttachments(deps.pool, callerOf(request).org_id, id);
      if (!attachments) throw new ServiceError('not_found', 'there is no email with this id');
      return { attachments: await withLinks(request, id, attachments) };
    },
  );
}

export function getAttachment(deps: AttachmentRoutesDeps) {
  const withLinks = linker(deps);
  return route(
    {
      tags,
      operationId: 'getAttachment',
      summary: 'Get an attachment of an email',
      description: 'One attachment with a fresh link.',
      params: AttachmentParams,
      response: { 200: AttachmentWithLink },
    },
    async (request) => {
      const { id, attachmentId } = request.params;
      const attachments = await findAttachments(deps.pool, callerOf(request).org_id, id, attachmentId);
      if (!attachments) throw new ServiceError('not_found', 'there is no email with this id');
      const [attachment] = await withLinks(request, id, attachments);
      if (!attachment) throw new ServiceError('not_found', 'this email has no attachment with this id');
      return attachment;
    },
  );
}

export function downloadAttachment(deps: AttachmentRoutesDeps) {
  const links = makeDownloadLinks(deps.secretKey);
  return route(
    {
      tags,
      operationId: 'downloadAttachment',
      summary: 'Download an attachment',
      description: 'Where `download_url` leads. Needs no API key.',
      params: AttachmentParams,
      querystring: DownloadQuery,
      response: {
        200: Type.Unsafe<unknown>({ type: 'string', format: 'binary', description: 'The file' }),
        ...errorResponses(404, 422, 500, 503),
      },
    },
    async (request, reply) => {
      const { id, attachmentId } = request.params;
      const expires = links.read(id, attachmentId, request.query);
      const file = expires === undefined ? undefined : await findDownload(deps.pool, id, attachmentId, expires);
      if (!file) throw noFile();
      if (request.method === 'HEAD') return sendFile(reply, file, Readable.from([]));
      const content = await deps.files.open(file.id);
      if (!content) throw noFile();
      return sendFile(reply, file, content);
    },
  );
}

/** Returns the same error for a forged link, an expired link and a deleted file. */
export function noFile(): ServiceError {
  return new ServiceError('not_found', 'this link has ended or leads to no file; ask the API for a fresh one');
}

/** Sends a file as a download: browsers must not display it, run it or guess its type under our origin. */
export function sendFile(
  reply: FastifyReply,
  { filename, content_type, size }: Pick<Attachment, 'filename' | 'content_type' | 'size'>,
  content: Readable,
): FastifyReply {
  return reply
    .headers({
      'content-type': content_type,
      'content-length': size,
      'content-disposition': disposition(filename),
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'cache-control': 'private, no-store',
    })
    .send(content);
}

/** RFC 6266: the name in UTF-8 (RFC 8187), and in ASCII for clients that do not support that. */
function disposition(filename: string): string {
  const plain = filename.replace(/[^\x20-\x7E]|["%\\]/gu, '_');
  const encoded = encodeURIComponent(filename).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

/** Adds download links with a common expiry to files. */
function linker({ pool, secretKey, publicUrl }: AttachmentRoutesDeps) {
  const links = makeDownloadLinks(secretKey);
  return async (request: FastifyRequest, emailId: string, attachments: readonly ListedAttachment[]) => {
    if (attachments.length === 0) return [];
    const expires = await secondsFromNow(pool, LINK_LIFE_SECONDS);
    const base = publicUrl ?? addressOf(request);
    return attachments.map(({ kept, ...attachment }) => ({
      ...attachment,
      download_url: kept ? base + links.make(emailId, attachment.id, expires) : null,
    }));
  };
}

/** The local address of the caller's connection. The Host header is not trusted. */
export function addressOf({ socket: { localAddress = '', localPort } }: FastifyRequest): string {
  const address = localAddress.replace(/^::ffff:/, '');
  return `http://${address.includes(':') ? `[${address}]` : address}:${localPort}`;
}
