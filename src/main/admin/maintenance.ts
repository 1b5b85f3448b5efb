import { type Command, Option } from 'commander';
import { requireOrganization } from '../../accounts/organizations.ts';
import { reseal } from '../../accounts/reseal.ts';
import { parsePhone } from '../../domain/chat/phone.ts';
import { requireAddress } from '../../domain/email/address.ts';
import { requireValid } from '../../domain/errors.ts';
import { markAllAmbiguous } from '../../intake/after-restore.ts';
import { eraseRecipientCompletely } from '../../intake/erasure.ts';
import { makeEmailContents } from '../../store/emails/contents.ts';
import { secretKeysOf } from '../../lib/secret-key.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { findSenders } from '../../store/upkeep/after-restore.ts';
import { openAttachmentStore } from '../wiring/attachment-store.ts';
import { lookUpOf } from '../wiring/email-providers.ts';
import { readCommandSettings } from '../wiring/command-settings.ts';
import { Refusal } from './api.ts';
import { auditedInParts } from './audit.ts';
import { commandsOf, type OfOrganization, onDatabase } from './command.ts';

/** One statement marks all open emails, however many there are. */
const AFTER_RESTORE_TIMEOUTS = { statementMs: 6 * 3_600_000 };

/** Adds the commands that erase a recipient, mark a restored backup, and re-encrypt stored secrets. */
export function addMaintenanceCommands(program: Command): void {
  commandsOf(program)('erase', 'Erase a recipient from everything that an organization has stored, and print a report.')
    .addOption(new Option('--email <address>', 'address of the recipient').conflicts('phone'))
    .addOption(new Option('--phone <number>', 'telephone number of the recipient, in international form'))
    .action(onDatabase(erase));
  program
    .command('after-restore')
    .description(
      'Mark what was open in a restored backup, so that nothing is sent twice. Run it before the first start.',
    )
    .action(onDatabase(markRestored, AFTER_RESTORE_TIMEOUTS));
  program
    .command('secrets')
    .description("the service's own secrets")
    .command('reseal')
    .description('Encrypt all stored secrets again with the current SECRET_KEY, and print how many.')
    .action(onDatabase(async (pool) => reseal(pool, secretKeysOf(await readCommandSettings('SECRET_KEY')))));
}

interface EraseOptions extends OfOrganization {
  readonly email?: string;
  readonly phone?: string;
}

async function erase(pool: Pool, { organization, email, phone }: EraseOptions): Promise<unknown> {
  if (email === undefined && phone === undefined) throw new Refusal('--email or --phone is required');
  const recipient =
    phone === undefined
      ? { email: requireAddress(email ?? '', 'email') }
      : { phone: requireValid(parsePhone(phone), 'phone').number };
  await requireOrganization(pool, organization);
  const settings = await readCommandSettings('SECRET_KEY');
  const files = await openAttachmentStore(settings);
  const contents = makeEmailContents(secretKeysOf(settings));
  // The audit entry must not contain the recipient, which is being erased.
  return auditedInParts(pool, { organization, action: 'erasures.create' }, () =>
    eraseRecipientCompletely({ pool, files, contents }, organization, recipient),
  );
}

/**
 * Marks all open messages as ambiguous, since they may have been sent after the backup. Run it once between restoring a
 * backup and sending again.
 */
async function markRestored(pool: Pool): Promise<object> {
  const senders = await findSenders(pool);
  if (senders.length > 0) {
    throw new Refusal(
      `stop the API and the workers first, they may send again what was sent before: ${senders.join(', ')}`,
    );
  }
  const { provider: asked } = lookUpOf(await readCommandSettings());
  return { ...(await markAllAmbiguous(pool, asked)), asked };
}
