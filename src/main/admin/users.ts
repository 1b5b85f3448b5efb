import {
  removeUser,
  resetUser,
  showUsers,
  signUserOut,
  unlockUser,
  type UserName,
} from '../../intake/user-accounts.ts';
import { createUser } from '../../intake/users.ts';
import { ROLES } from '../../store/users.ts';
import { pipedLine } from '../piped-line.ts';
import { endWith } from '../process.ts';
import { type DatabaseCommand, needed, optional, type Options, UsageError } from './command.ts';

/** People who use the dashboard. */
export const USERS = {
  'user create': {
    usage: `--organization O --email E [--role ${ROLES.join('|')}] [--reset-password]`,
    run: async (pool, options) => {
      const [organization, email] = [needed(options, 'organization'), needed(options, 'email')];
      const given = optional(options, 'role');
      const role = ROLES.find((name) => name === given);
      if (given !== undefined && !role) endWith(`--role must be one of ${ROLES.join(', ')}`);
      const resetPassword = options['reset-password'] === true;
      return createUser(pool, organization, { email, password: await pipedLine(), role, resetPassword });
    },
  },
  'user list': {
    usage: '[--organization O]',
    run: (pool, options) => showUsers(pool, optional(options, 'organization') ?? null),
  },
  'user reset': {
    usage: '(--user U | --email E)',
    run: async (pool, options) => resetUser(pool, userIn(options), await pipedLine()),
  },
  'user unlock': {
    usage: '(--user U | --email E)',
    run: async (pool, options) => unlockUser(pool, userIn(options)),
  },
  'user sign-out': {
    usage: '(--user U | --email E)',
    run: async (pool, options) => signUserOut(pool, userIn(options)),
  },
  'user delete': {
    usage: '(--user U | --email E) [--force]',
    run: async (pool, options) => removeUser(pool, userIn(options), options['force'] === true),
  },
} satisfies Record<string, DatabaseCommand>;

function userIn(options: Options): UserName {
  const [id, email] = [optional(options, 'user'), optional(options, 'email')];
  if (id !== undefined && email === undefined) return { id };
  if (email !== undefined && id === undefined) return { email };
  throw new UsageError(id === undefined ? '--user or --email is missing' : '--user and --email exclude each other');
}
