import type { Command } from 'commander';
import { requireOrganization } from '../../accounts/organizations.ts';
import { secretKeysOf } from '../../lib/secret-key.ts';
import { ServiceError } from '../../domain/errors.ts';
import { parseInstant } from '../../domain/instant.ts';
import { makeWithFiles } from '../../intake/attachments.ts';
import { gatherEmails, noLimits } from '../../intake/emails.ts';
import { listRetryable, retryFailed } from '../../intake/retry-failed.ts';
import { makePublicFetch } from '../../public-fetch/fetch.ts';
import { makeEmailContents } from '../../store/emails/contents.ts';
import { makePool, type Pool } from '../../store/postgres/pool.ts';
import { openAttachmentStore } from '../wiring/attachment-store.ts';
import { databaseUrl } from '../wiring/command-database.ts';
import { readCommandSettings } from '../wiring/command-settings.ts';
import { auditedInParts } from './audit.ts';
import { commandsOf, type OfOrganization, onDatabase, option, required, wakeRelay } from './command.ts';

interface RetryOptions extends OfOrganization {
  readonly status: 'failed' | 'rejected';
  readonly since: string;
  readonly error?: string;
  readonly dryRun?: boolean;
}

/** Adds `emails retry`, for email that a provider refused and that can be sent now. */
export function addRetryCommand(emails: Command): void {
  commandsOf(emails)(
    'retry',
    'Send failed or rejected email of an organization again, each as a new email of the same content.',
  )
    .addOption(required('--status <status>', 'status of the emails').choices(['failed', 'rejected']))
    .addOption(required('--since <time>', 'when they failed or later, such as 2026-03-01T09:30Z'))
    .addOption(option('--error <text>', 'a part of their error'))
    .option('--dry-run', 'list the emails without sending them')
    .action(onDatabase(retry));
}

async function retry(
  lookup: Pool,
  { organization, status, error, dryRun = false, ...options }: RetryOptions,
): Promise<unknown> {
  const since = parseInstant(options.since);
  if (!since)
    throw new ServiceError(
      'validation_error',
      'is not a time; an instant such as 2026-03-01T09:30Z is needed',
      'since',
    );
  const filter = { status, since, errorPart: error ?? null } as const;
  if (dryRun) {
    const emails = await listRetryable({ pool: lookup }, organization, filter);
    return { matched: emails.length, emails };
  }
  // The command's own pool has one connection; storing an email may need a second one.
  const pool = makePool(await databaseUrl(), 'admin', 5, () => undefined);
  try {
    const settings = await readCommandSettings('SECRET_KEY');
    const files = await openAttachmentStore(settings);
    const deps = {
      pool,
      files,
      contents: makeEmailContents(secretKeysOf(settings)),
      withFiles: makeWithFiles({ pool, files, fetchPublic: makePublicFetch({ allowedCidrs: [] }), maxStoredBytes: 0 }),
      storeEmail: gatherEmails(pool),
      limits: noLimits(),
      wakeRelay,
    };
    await requireOrganization(pool, organization);
    return await auditedInParts(pool, { organization, action: 'emails.retry', detail: { status, since } }, () =>
      retryFailed(deps, organization, filter),
    );
  } finally {
    await pool.end();
  }
}
