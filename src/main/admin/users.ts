import { createUser } from '../../intake/users.ts';
import { pipedLine } from '../piped-line.ts';
import { type DatabaseCommand, needed } from './command.ts';

/** People who use the dashboard. */
export const USERS = {
  'user create': {
    usage: '--organization O --email E',
    run: async (pool, options) => {
      const [organization, email] = [needed(options, 'organization'), needed(options, 'email')];
      return createUser(pool, organization, email, await pipedLine());
    },
  },
} satisfies Record<string, DatabaseCommand>;
