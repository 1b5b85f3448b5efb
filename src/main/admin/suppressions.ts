import { requireOrganization } from '../../intake/accounts.ts';
import { allSuppressions, listedAddress, suppress, unsuppress } from '../../intake/suppressions.ts';
import type { Pool } from '../../store/pool.ts';
import { audited } from './audit.ts';
import { type DatabaseCommand, needed, type Options } from './command.ts';

/** Addresses that get nothing. */
export const SUPPRESSIONS = {
  'suppression add': {
    usage: '--organization O --email E',
    run: async (pool, options) => {
      const { organization, email } = await listAndAddress(pool, options);
      const { suppressions } = await audited(pool, { organization, action: 'suppressions.create' }, () =>
        suppress(pool, organization, [email]),
      );
      return suppressions[0];
    },
  },
  'suppression remove': {
    usage: '--organization O --email E',
    run: async (pool, options) => {
      const { organization, email } = await listAndAddress(pool, options);
      const removed = await audited(pool, { organization, action: 'suppressions.delete' }, () =>
        unsuppress(pool, organization, email),
      );
      return { email, removed };
    },
  },
  'suppression list': {
    usage: '--organization O',
    run: async (pool, options) => {
      const organization = needed(options, 'organization');
      await requireOrganization(pool, organization);
      return audited(pool, { organization, action: 'suppressions.export' }, () => allSuppressions(pool, organization));
    },
  },
} satisfies Record<string, DatabaseCommand>;

/** Whose list, and which address on it. */
async function listAndAddress(pool: Pool, options: Options): Promise<{ organization: string; email: string }> {
  const organization = needed(options, 'organization');
  const email = listedAddress(needed(options, 'email'), 'email');
  await requireOrganization(pool, organization);
  return { organization, email };
}
