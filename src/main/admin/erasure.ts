import { pino } from 'pino';
import { requireOrganization } from '../../intake/accounts.ts';
import { eraseRecipientWhole } from '../../intake/erasure.ts';
import { listedAddress } from '../../intake/suppressions.ts';
import { makeEmailContents } from '../../store/email-contents.ts';
import { openAttachmentStore } from '../attachment-store.ts';
import { readSettings } from '../env.ts';
import { webhookSettings } from '../webhook-settings.ts';
import { type DatabaseCommand, needed } from './command.ts';

/** What is done for a person who asks for the erasure of their data. */
export const ERASURE = {
  erase: {
    usage: '--organization O --email E',
    run: async (pool, options) => {
      const organization = needed(options, 'organization');
      const email = listedAddress(needed(options, 'email'), 'email');
      await requireOrganization(pool, organization);
      const { secretKey } = await webhookSettings();
      const files = await openAttachmentStore(readSettings(), pino({ level: 'silent' }));
      return eraseRecipientWhole({ pool, files, contents: makeEmailContents(secretKey) }, organization, email);
    },
  },
} satisfies Record<string, DatabaseCommand>;
