import { addAbortSignal } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Logger } from 'pino';
import type { Attachment } from '../../domain/email/attachments.ts';
import { makeSemaphore } from '../../lib/semaphore.ts';
import type { OutgoingFile } from '../../domain/email/outgoing.ts';
import { readBodies } from '../../store/emails/attempts.ts';
import type { FileStore } from '../../store/files/file-store.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { clearSuspects, markSuspects } from '../../store/emails/suspects.ts';
import type { LargeContents, LargeEmail, LargeEmails } from './contract.ts';

/** Maximum content that one worker holds at a time. While content is sent, it takes up to five times its size in memory. */
const MEMORY_BYTES = 64 * 1_048_576;
/** The limit of one organization, so that a quarter remains for others. */
const ORGANIZATION_MEMORY_BYTES = 48 * 1_048_576;
/** Short, since a waiting email occupies an activity slot that small emails need as well. */
const MEMORY_WAIT_MS = 2_000;
/** Limits the emails that wait for memory, which could otherwise occupy all activity slots of a worker. */
const MAX_WAITING = 16;
const FILES_TIMEOUT_MS = 30_000;

export function makeLargeEmails(pool: Pool, store: FileStore, log: Logger): LargeEmails {
  const memory = makeSemaphore(MEMORY_BYTES, ORGANIZATION_MEMORY_BYTES);
  let waiting = 0;

  async function reserve(emails: readonly LargeEmail[]): Promise<(() => void) | undefined> {
    if (waiting >= MAX_WAITING) return undefined;
    waiting++;
    try {
      const bytes = emails.reduce((sum, email) => sum + email.bytes, 0);
      return await memory.take(bytes, {
        signal: AbortSignal.timeout(MEMORY_WAIT_MS),
        holder: emails[0]?.orgId,
      });
    } catch {
      return undefined;
    } finally {
      waiting--;
    }
  }

  async function read(emails: readonly LargeEmail[]): Promise<LargeContents | undefined> {
    const ids = emails.map(({ member }) => member.id);
    // If an email crashes this process from here on, it is marked as a suspect although it has no attempt yet.
    await markSuspects(pool, ids);
    const files = new Map<string, readonly OutgoingFile[] | 'lost'>();
    for (const { member, attachments } of emails) {
      try {
        files.set(member.id, await readAll(store, attachments));
      } catch (error) {
        log.error({ err: error, email: member.id }, 'attachments unreadable');
        if (!(error instanceof FileLost)) {
          await clearSuspects(pool, ids);
          return undefined;
        }
        files.set(member.id, 'lost');
      }
    }
    const bodies = new Map((await readBodies(pool, ids)).map((each) => [each.id, each]));
    return new Map(
      ids.map((id) => {
        const { html = null, text = null, sealed_body = null } = bodies.get(id) ?? {};
        return [id, { html, text, sealed_body, files: files.get(id) ?? [] }];
      }),
    );
  }

  return {
    async use(emails, work) {
      const release = await reserve(emails);
      if (!release) return 'no memory';
      let ended: Promise<unknown> | undefined;
      try {
        const contents = await read(emails);
        if (!contents) return 'unreadable';
        const result = await work(contents);
        ended = result.ended;
        return result;
      } finally {
        if (ended) void ended.finally(release);
        else release();
      }
    },
  };
}

/** The file is missing or has another size. */
class FileLost extends Error {}

async function readAll(store: FileStore, attachments: readonly Attachment[]): Promise<OutgoingFile[]> {
  const files: OutgoingFile[] = [];
  const timeout = AbortSignal.timeout(FILES_TIMEOUT_MS);
  for (const attachment of attachments) files.push(await readOne(store, attachment, timeout));
  return files;
}

async function readOne(store: FileStore, attachment: Attachment, timeout: AbortSignal): Promise<OutgoingFile> {
  const { id, filename, content_type: contentType, content_id: contentId, size } = attachment;
  const stream = await store.open(id);
  if (!stream) throw new FileLost(`the file ${id} is not in the attachment store`);
  const content = await buffer(addAbortSignal(timeout, stream));
  if (content.length !== size) throw new FileLost(`the file ${id} has ${content.length} bytes, not ${size}`);
  return { filename, contentType, contentId, content };
}
