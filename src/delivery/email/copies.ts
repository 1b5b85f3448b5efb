import type { EmailStatus } from '../../domain/email/email.ts';
import { groupBy } from '../../lib/group.ts';
import { project } from '../../projection/emails.ts';
import { type CopyStatus, failCopies, statusesOfCopies } from '../../store/emails/recipients.ts';
import type { Db } from '../../store/postgres/pool.ts';

/** Statuses of copies of which nothing says that a provider took them. */
const NOT_TAKEN: readonly EmailStatus[] = ['queued', 'bounced', 'suppressed', 'rejected', 'failed'];

/**
 * Ends marketing emails that went out in copies, when none of those is left to be sent: `sent` when a provider took one,
 * else as the copies ended. The caller holds the emails' rows.
 * @param provider who took the last of them
 * @returns how each ended; emails with copies left, or without any, are missing
 */
export async function endCopied(
  client: Db,
  ids: readonly string[],
  provider?: string,
): Promise<Map<string, EmailStatus>> {
  const ended = new Map<string, EmailStatus>();
  for (const [id, copies] of groupBy(await statusesOfCopies(client, ids), ({ email_id }) => email_id)) {
    const ending = endingOf(copies);
    if (!ending) continue;
    const { change, error } = ending;
    // Each bounce was written down with its copy.
    if (change !== 'bounced') {
      const said = { id, ...(error !== null && { error }), ...(provider !== undefined && { provider }) };
      await project(client, change, [change === 'sent' ? { ...said, dedupe_key: 'sent copies' } : said]);
    }
    ended.set(id, change);
  }
  return ended;
}

/**
 * Gives emails up: they fail, or, when some of their copies went out, those that are left do. The caller holds the
 * emails' rows. @returns how each ended
 */
export async function fail(
  client: Db,
  failed: readonly { id: string; error: string }[],
): Promise<Map<string, EmailStatus>> {
  const copied = await failCopies(client, failed);
  const whole = failed.filter(({ id }) => !copied.has(id));
  await project(client, 'failed', whole);
  const statuses = await endCopied(client, [...copied]);
  for (const { id } of whole) statuses.set(id, 'failed');
  return statuses;
}

function endingOf(
  copies: readonly CopyStatus[],
): { change: 'sent' | 'bounced' | 'failed' | 'rejected' | 'suppressed'; error: string | null } | undefined {
  const find = (status: EmailStatus) => copies.find((copy) => copy.status === status);
  if (find('queued')) return undefined;
  if (copies.some(({ status }) => !NOT_TAKEN.includes(status))) return { change: 'sent', error: null };
  for (const change of ['bounced', 'failed', 'rejected', 'suppressed'] as const) {
    const found = find(change);
    if (found) return { change, error: found.error };
  }
  return undefined;
}
