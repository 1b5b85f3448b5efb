import { type Command, InvalidArgumentError } from 'commander';
import {
  removeSecondFactor,
  removeUser,
  resetUser,
  showUsers,
  signUserOut,
  unlinkOidc,
  unlockUser,
  type UserName,
} from '../../accounts/user-accounts.ts';
import { createUser } from '../../accounts/users.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { ROLES } from '../../store/accounts/users.ts';
import { readPipedLine } from '../piped-line.ts';
import { addListOfAll, commandsOf, type OfOrganization, onDatabase, option, required } from './command.ts';

interface CreateOptions extends OfOrganization {
  readonly email: string;
  readonly role?: (typeof ROLES)[number];
  readonly resetPassword?: boolean;
}

interface UserOptions {
  readonly user?: string;
  readonly email?: string;
  readonly force?: boolean;
}

export function addUserCommands(program: Command): void {
  const user = program.command('user').description('users of the dashboard');
  commandsOf(user)(
    'create',
    'Create a user, with the password that a pipe brings or a generated one, which is printed.',
  )
    .addOption(required('--email <address>', 'address that the user signs in with'))
    .addOption(
      option(
        '--role <role>',
        'role in the organization; by default owner for a new user, member for an existing one',
      ).choices(ROLES),
    )
    .option('--reset-password', 'take over an account that was created from an invitation link')
    .action(onDatabase(create));
  addListOfAll(user, 'List the users of an organization, or of all.', showUsers);
  const onUser = (
    name: string,
    description: string,
    run: (pool: Pool, user: UserName, options: UserOptions) => Promise<unknown>,
  ) =>
    user
      .command(name)
      .description(description)
      .addOption(option('--user <id>', 'id of the user'))
      .addOption(option('--email <address>', 'address of the user, instead of --user').conflicts('user'))
      .action(onDatabase(async (pool, options: UserOptions) => run(pool, userOf(options), options)));
  onUser('reset', 'Set a new password, from a pipe or a generated one, and end all sessions.', (pool, name) =>
    withPipedPassword((password) => resetUser(pool, name, password)),
  );
  onUser('unlock', 'Remove the limits that failed sign-ins have reached.', unlockUser);
  onUser('reset-second-factor', 'Remove the second factor of a user who has lost it.', removeSecondFactor);
  onUser(
    'unlink-oidc',
    'Remove the identity with which a user signs in by OpenID Connect, and end all sessions.',
    unlinkOidc,
  );
  onUser('sign-out', 'End all sessions of a user.', signUserOut);
  onUser('delete', 'Delete a user.', (pool, name, { force = false }) => removeUser(pool, name, force))
    .alias('remove')
    .option('--force', 'also the only owner of an organization');
}

async function create(
  pool: Pool,
  { organization, email, role, resetPassword = false }: CreateOptions,
): Promise<object> {
  return withPipedPassword((password) => createUser(pool, organization, { email, password, role, resetPassword }));
}

/** Passes the line of a pipe or file on as the password. Reports that, since in a script it may be meant for other commands. */
async function withPipedPassword<T>(run: (password: string | undefined) => Promise<T>): Promise<T> {
  const password = await readPipedLine();
  const result = await run(password);
  if (password !== undefined) console.error('The password was read from standard input.');
  return result;
}

function userOf({ user, email }: UserOptions): UserName {
  if (user !== undefined) return { id: user };
  if (email !== undefined) return { email };
  throw new InvalidArgumentError('--user or --email is missing');
}
