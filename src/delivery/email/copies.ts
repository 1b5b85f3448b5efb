import type { EmailStatus } from '../../domain/email/email.ts';
import { groupBy } from '../../lib/group.ts';
import { project } from '../../projection/emails.ts';
import { lockStatuses } from '../../store/emails/attempts.ts';
import { type CopyStatus, failCopies, statusesOfCopies } from '../../store/emails/recipients.ts';
import type { Db } from '../../store/postgres/pool.ts';
import type { Failure } from '../contract.ts';

/** The deduplication key of the event `sent` of an email that takes several calls. */
export const SENT_IN_PARTS = 'sent copies';

/** Statuses of copies that no provider has accepted. */
const NOT_ACCEPTED: readonly EmailStatus[] = ['queued', 'bounced', 'suppressed', 'rejected', 'failed'];

/**
 * Ends marketing emails of which no copy is left to be sent, and emails of which no deferred recipient is left: `sent` if a provider accepted one, otherwise the first of bounced,
 * failed, rejected and suppressed that a copy has. The caller has locked the emails' rows.
 * @returns the final statuses; emails with copies left, or without copies, are missing
 */
export async function endCopied(client: Db, ids: readonly string[]): Promise<Map<string, EmailStatus>> {
  const ended = new Map<string, EmailStatus>();
  for (const [id, copies] of groupBy(await statusesOfCopies(client, ids), ({ email_id }) => email_id)) {
    const ending = endingOf(copies);
    if (!ending) continue;
    const { change, error, provider } = ending;
    // Each bounce was recorded with its copy.
    if (change !== 'bounced') {
      const outcome = { id, ...(error !== null && { error }), ...(provider !== null && { provider }) };
      await project(client, change, [change === 'sent' ? { ...outcome, dedupe_key: SENT_IN_PARTS } : outcome]);
    }
    ended.set(id, change);
  }
  return ended;
}

/**
 * Fails emails. Of an email that is sent in copies or has deferred recipients, fails only what is unsent, or only that of `Failure.call`.
 * @returns the final statuses; emails with copies left are missing
 */
export async function fail(client: Db, failed: readonly Failure[]): Promise<Map<string, EmailStatus>> {
  if (failed.length === 0) return new Map();
  const ids = failed.map(({ id }) => id);
  await lockStatuses(client, ids);
  const failedCopies = await failCopies(client, failed);
  const stillOpen = (await statusesOfCopies(client, ids)).filter(({ status }) => status === 'queued');
  const copied = new Set([...failedCopies, ...stillOpen].map(({ email_id }) => email_id));
  const whole = failed.filter(({ id }) => !copied.has(id));
  await project(client, 'failed', whole);
  const statuses = await endCopied(client, [...copied]);
  // The event of an email that failed as a whole concerns all of its recipients.
  const reported = failedCopies.filter(({ email_id }) => statuses.get(email_id) !== 'failed');
  await project(
    client,
    'failed_for_one',
    reported.map(({ email_id: id, recipient, error }) => ({ id, recipient, error })),
  );
  for (const { id } of whole) statuses.set(id, 'failed');
  return statuses;
}

interface Ending extends Pick<CopyStatus, 'error' | 'provider'> {
  readonly change: 'sent' | 'bounced' | 'failed' | 'rejected' | 'suppressed';
}

function endingOf(copies: readonly CopyStatus[]): Ending | undefined {
  const find = (status: EmailStatus) => copies.find((copy) => copy.status === status);
  if (find('queued')) return undefined;
  const accepted = copies.find(({ status }) => !NOT_ACCEPTED.includes(status));
  if (accepted) return { change: 'sent', error: null, provider: accepted.provider };
  for (const change of ['bounced', 'failed', 'rejected', 'suppressed'] as const) {
    const copy = find(change);
    if (copy) return { change, error: copy.error, provider: copy.provider };
  }
  return undefined;
}
