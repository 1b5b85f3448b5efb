import { pino } from 'pino';
import { ServiceError } from '../../domain/errors.ts';
import { parseInstant } from '../../domain/instant.ts';
import { makeWithFiles } from '../../intake/attachments.ts';
import { unlimited } from '../../intake/emails.ts';
import { gatherEmails } from '../../intake/gathered-emails.ts';
import { listAll, retryFailed } from '../../intake/retry-failed.ts';
import { makePublicFetch } from '../../public-fetch/fetch.ts';
import { makeEmailContents } from '../../store/email-contents.ts';
import { makePool, type Pool } from '../../store/pool.ts';
import { openAttachmentStore } from '../attachment-store.ts';
import { databaseUrl } from '../database-url.ts';
import { readSettings } from '../env.ts';
import { webhookSettings } from '../webhook-settings.ts';
import { type DatabaseCommand, needed, optional, type Options } from './command.ts';

/** What an operator does after providers refused what can be sent now. */
export const RETRY = {
  'emails retry': {
    usage: '--organization O --status failed|rejected --since TIME [--error TEXT] [--dry-run]',
    run: retry,
  },
} satisfies Record<string, DatabaseCommand>;

async function retry(lookup: Pool, options: Options): Promise<unknown> {
  const organization = needed(options, 'organization');
  const status = needed(options, 'status');
  if (status !== 'failed' && status !== 'rejected')
    throw new ServiceError('validation_error', 'cannot be retried; failed and rejected can', 'status');
  const since = parseInstant(needed(options, 'since'));
  if (!since)
    throw new ServiceError(
      'validation_error',
      'is not a time; an instant such as 2026-03-01T09:30Z is needed',
      'since',
    );
  const filter = { status, since, errorPart: optional(options, 'error') ?? null } as const;
  if (options['dry-run'] === true) {
    const emails = await listAll({ pool: lookup }, organization, filter);
    return { matched: emails.length, emails };
  }
  // The command's own pool has one connection; storing an email may need a second one.
  const pool = makePool(await databaseUrl(), 'admin', 5, () => undefined);
  try {
    const config = readSettings();
    const files = await openAttachmentStore(config, pino({ level: 'silent' }));
    const { secretKey } = await webhookSettings();
    const deps = {
      pool,
      files,
      contents: makeEmailContents(secretKey),
      withFiles: makeWithFiles({ pool, files, fetchPublic: makePublicFetch({ allowedCidrs: [] }), maxStoredBytes: 0 }),
      storeEmail: gatherEmails(pool),
      limits: unlimited(),
      // Relays look into the outbox every second.
      wakeRelay: () => undefined,
    };
    return await retryFailed(deps, organization, filter);
  } finally {
    await pool.end();
  }
}
