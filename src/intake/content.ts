import { notFound, requireFound, ServiceError } from '../domain/errors.ts';
import { MESSAGE_NAMES, type MessageChannel } from '../domain/messages/message.ts';
import { markDeleted } from '../store/emails/attachments.ts';
import { eraseContents, findFileIds } from '../store/emails/content-erasure.ts';
import type { EmailContents } from '../store/emails/contents.ts';
import type { FileStore } from '../store/files/file-store.ts';
import { emailExists, findContent } from '../store/emails/message-details.ts';
import { eraseMessageContents } from '../store/messages/content-erasure.ts';
import { type Pool, transaction } from '../store/postgres/pool.ts';

interface ContentDeps {
  readonly pool: Pool;
  readonly contents: EmailContents;
  readonly files: FileStore;
}

interface SentContent {
  readonly subject: string;
  readonly html: string | null;
  readonly text: string | null;
  readonly headers: Record<string, string>;
}

/** @throws ServiceError not_found, or content_erased */
export async function readContent(deps: ContentDeps, orgId: string, id: string): Promise<SentContent> {
  const content = await findContent(deps.pool, deps.contents, orgId, id);
  if (!content) {
    if (!(await emailExists(deps.pool, orgId, id))) throw notFound('email');
    throw new ServiceError('content_erased', 'the content of this email was erased');
  }
  const { subject, html, text, headers } = content;
  return { subject, html: html || null, text: text || null, headers };
}

/**
 * Erases the content of a chat-app message or SMS, and keeps its record. Idempotent.
 * @throws ServiceError not_found, or conflict while the message is pending
 */
export async function eraseMessageContent(
  { pool }: Pick<ContentDeps, 'pool'>,
  orgId: string,
  channel: MessageChannel,
  id: string,
): Promise<void> {
  const [erased] = await transaction(pool, (client) => eraseMessageContents(client, orgId, [id], channel));
  if (requireFound(erased, MESSAGE_NAMES[channel]).is_open) throw stillPending('message');
}

function stillPending(name: string): ServiceError {
  return new ServiceError('conflict', `this ${name} is still to be sent; cancel it, or wait until it is sent`);
}

/**
 * Erases the body, custom headers and files of an email, and keeps its record. Idempotent.
 * @throws ServiceError not_found, or conflict while the email is pending
 */
export async function eraseContent(deps: ContentDeps, orgId: string, id: string): Promise<void> {
  const { pool, files } = deps;
  await transaction(pool, async (client) => {
    const [erased] = await eraseContents(client, orgId, [id]);
    if (requireFound(erased, 'email').is_open) {
      throw stillPending('email');
    }
    const ids = await findFileIds(client, [id]);
    if (ids.length === 0) return;
    await markDeleted(client, ids);
    // Remove the files before the commit: if the file store is unreachable, nothing is erased and the caller can retry.
    await files.remove(ids);
  });
}
