import type { Command } from 'commander';
import { markAllAmbiguous } from '../../intake/after-restore.ts';
import { findSenders } from '../../store/upkeep/after-restore.ts';
import { emailProviderNames } from '../wiring/email-providers.ts';
import { readSettings } from '../env.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { Refusal } from './api.ts';
import { onDatabase } from './command.ts';

/** Adds the command to run once between restoring a backup and sending again. */
export function addRestoreCommand(program: Command): void {
  program
    .command('after-restore')
    .description(
      'Mark what was open in a restored backup, so that nothing is sent twice. Run it before the first start.',
    )
    .action(onDatabase(markRestored));
}

async function markRestored(pool: Pool): Promise<object> {
  const senders = await findSenders(pool);
  if (senders.length > 0) {
    throw new Refusal(
      `stop the API and the workers first, they may send again what was sent before: ${senders.join(', ')}`,
    );
  }
  const providers = emailProviderNames(readSettings());
  // Without a provider that supports lookups, AMBIGUOUS_SEND decides.
  const asked = providers.find((name) => name === 'postmark') ?? providers[0] ?? 'postmark';
  return { ...(await markAllAmbiguous(pool, asked)), asked };
}
