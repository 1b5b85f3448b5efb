import { buffer } from 'node:stream/consumers';
import { hasAccountLink, isAccountEmail } from '../domain/email/account-link.ts';
import type { AttachmentRequest } from '../domain/email/attachments.ts';
import type { EmailContent } from '../domain/email/content.ts';
import type { EmailRequest } from '../domain/email/email.ts';
import { digest } from '../lib/digest.ts';
import { requireFound, ServiceError } from '../domain/errors.ts';
import { findAccountLinks } from '../store/emails/account-links.ts';
import { findAttachments, type ListedAttachment } from '../store/emails/attachments.ts';
import type { Acceptance } from '../store/emails/accept.ts';
import { findEmail, type Original } from '../store/emails/emails.ts';
import type { FileStore } from '../store/files/file-store.ts';
import { findContent } from '../store/emails/message-details.ts';
import type { IdempotencyKey } from '../store/limits/idempotency.ts';
import type { Db } from '../store/postgres/pool.ts';
import { acceptEmail, type AcceptOptions, type IntakeDeps } from './emails.ts';

const CONTENT_GONE = 'The content of this email is no longer stored, so it cannot be resent.';
const FILE_GONE = 'An attachment of this email is no longer stored, so it cannot be resent.';
const LINK_GONE = 'The link in this email is not stored with it, so it cannot be resent; request another.';

export interface ResendDeps extends IntakeDeps {
  readonly files: FileStore;
}

/**
 * Resends a stored email as a new email with the same content, recipients and copies of its files. Sendwright
 * generates its own headers again.
 * @param requestId deduplicates: a repeated click sends one email
 * @param scheduledAt an instant in the API's format; null sends it immediately
 * @throws ServiceError not_found; conflict if its content was deleted, if it is about an account, or if `requestId` was used before;
 * the errors of acceptEmail
 */
export async function resendEmail(
  deps: ResendDeps,
  orgId: string,
  original: Original,
  requestId: string,
  scheduledAt: string | null = null,
): Promise<Acceptance> {
  const { id } = original;
  const { pool } = deps;
  const email = requireFound(await findEmail(pool, deps.contents, orgId, id), 'email');
  const content = await findContent(pool, deps.contents, orgId, id);
  const attachments = (await findAttachments(pool, orgId, id)) ?? [];
  const blocker = await findResendBlocker(pool, id, content, attachments);
  if (!content || blocker !== undefined) throw new ServiceError('conflict', blocker ?? CONTENT_GONE);
  const { from, to, cc, bcc, reply_to, marketing, tags } = email;
  const request = { from, to, cc, bcc, reply_to, marketing, tags, ...content, scheduled_at: scheduledAt };
  const idempotency = { key: `again ${requestId}`, fingerprint: digest(id) };
  const options = { attachments: await readFiles(deps.files, attachments), idempotency, original };
  return acceptOnce(deps, orgId, request, options, 'This email was resent already; see your latest emails.');
}

/**
 * Returns the reason why an email cannot be resent, or undefined if it can.
 * @param content undefined if it was deleted
 */
export async function findResendBlocker(
  db: Db,
  id: string,
  content: EmailContent | undefined,
  attachments: readonly Pick<ListedAttachment, 'kept'>[],
): Promise<string | undefined> {
  if (!content) return CONTENT_GONE;
  if (attachments.some(({ kept }) => !kept)) return FILE_GONE;
  return (await isAboutAccount(db, id, content)) ? LINK_GONE : undefined;
}

/**
 * Accepts an email of the dashboard once per idempotency key.
 * @param repeated the message of the error `conflict` for a used key
 */
export async function acceptOnce(
  deps: IntakeDeps,
  orgId: string,
  request: EmailRequest,
  options: AcceptOptions & { readonly idempotency: IdempotencyKey },
  repeated: string,
): Promise<Acceptance> {
  try {
    return await acceptEmail(deps, { orgId, domainIds: null }, request, options);
  } catch (error) {
    const isDone = error instanceof ServiceError && error.code === 'concurrent_idempotent_requests';
    throw isDone ? new ServiceError('conflict', repeated) : error;
  }
}

/** Reads files one after the other: each may be as large as a whole request. */
async function readFiles(files: FileStore, attachments: readonly ListedAttachment[]): Promise<AttachmentRequest[]> {
  const requests: AttachmentRequest[] = [];
  for (const { id, filename, content_type, content_id } of attachments) {
    const stream = await files.open(id);
    if (!stream) throw new ServiceError('conflict', FILE_GONE);
    const content = (await buffer(stream)).toString('base64');
    requests.push({ filename, content, path: null, content_type, content_id });
  }
  return requests;
}

/** The link of an email about an account is stored for its id only. */
async function isAboutAccount(db: Db, id: string, content: EmailContent): Promise<boolean> {
  if (!hasAccountLink(content)) return false;
  const [link] = await findAccountLinks(db, [id]);
  const headers = Object.entries(content.headers);
  return link !== undefined && (link.sealed !== null || isAccountEmail({ ...content, headers }, link.has_api_key));
}
