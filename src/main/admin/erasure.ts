import type { Command } from 'commander';
import { requireOrganization } from '../../accounts/organizations.ts';
import { eraseRecipientWhole } from '../../intake/erasure.ts';
import { listedAddress } from '../../accounts/suppressions.ts';
import { makeEmailContents } from '../../store/emails/contents.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { openAttachmentStore } from '../wiring/attachment-store.ts';
import { readSettings } from '../env.ts';
import { webhookSettings } from '../wiring/webhook-settings.ts';
import { onDatabase, organizationOption, required } from './command.ts';

/** Adds the command that erases the data of a recipient. */
export function addErasureCommand(program: Command): void {
  program
    .command('erase')
    .description(
      'Erase the address of a recipient from everything that an organization has stored, and print a report.',
    )
    .addOption(organizationOption())
    .addOption(required('--email <address>', 'address of the recipient'))
    .action(onDatabase(erase));
}

async function erase(pool: Pool, options: { organization: string; email: string }): Promise<unknown> {
  const { organization } = options;
  const email = listedAddress(options.email, 'email');
  await requireOrganization(pool, organization);
  const { secretKey } = await webhookSettings();
  const files = await openAttachmentStore(readSettings());
  return eraseRecipientWhole({ pool, files, contents: makeEmailContents(secretKey) }, organization, email);
}
