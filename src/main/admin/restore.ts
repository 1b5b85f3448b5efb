import { doubtAll } from '../../intake/after-restore.ts';
import { findSenders } from '../../store/after-restore.ts';
import { emailProviderNames } from '../email-providers.ts';
import { readSettings } from '../env.ts';
import { endWith } from '../process.ts';
import type { DatabaseCommand } from './command.ts';

/** What has to be done once between restoring a backup and sending again. */
export const RESTORE = {
  'after-restore': {
    usage: '',
    run: async (pool) => {
      const senders = await findSenders(pool);
      if (senders.length > 0) {
        endWith(`stop the API and the workers first, they may send again what was sent before: ${senders.join(', ')}`);
      }
      const providers = emailProviderNames(readSettings());
      // Where none can be asked, AMBIGUOUS_SEND decides.
      const asked = providers.find((name) => name === 'postmark') ?? providers[0] ?? 'postmark';
      return { ...(await doubtAll(pool, asked)), asked };
    },
  },
} satisfies Record<string, DatabaseCommand>;
