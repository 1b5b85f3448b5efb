import { type Visitor, visitor } from '../../dev/fixtures/visitor.ts';
import { hashPassword } from '../../src/accounts/passwords.ts';
import { createSession } from '../../src/accounts/sign-in.ts';
import { newId } from '../../src/lib/ids.ts';
import { insertMembership, insertUser, type Role } from '../../src/store/accounts/users.ts';
import type { Pool } from '../../src/store/postgres/pool.ts';

export { type Fields, type Page, textOf, visitor, type Visitor } from '../../dev/fixtures/visitor.ts';

export const PASSWORD = 'correct horse battery';

/** The client of sessions that tests begin. */
export const TEST_BROWSER = {
  address: '192.0.2.1',
  userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Firefox/145.0',
};

let count = 0;
let passwordHash: Promise<string> | undefined;

/** A user, signed in. */
export interface Person extends Visitor {
  readonly id: string;
  readonly email: string;
}

/** A user of an organization with this role, signed in. */
export async function signedIn(
  service: { readonly url: string; readonly pool: Pool },
  orgId: string,
  role: Role = 'owner',
): Promise<Person> {
  const email = `person${++count}@example.com`;
  const id = newId('usr');
  // One hash for all users, since hashing takes most of the time of a test.
  passwordHash ??= hashPassword(PASSWORD);
  await insertUser(service.pool, { id, email, name: '', password: await passwordHash }, true);
  await insertMembership(service.pool, orgId, id, role);
  const made = visitor(service);
  made.take(`sendwright=${await createSession(service.pool, id, TEST_BROWSER)}`);
  return { ...made, id, email };
}

/** The latest entry of the audit log for an action. */
export async function latestAudit({ pool }: { readonly pool: Pool }, action: string) {
  const { rows } = await pool.query<{ target: string; detail: Record<string, unknown> }>(
    'SELECT target, detail FROM audit_log WHERE action = $1 ORDER BY at DESC LIMIT 1',
    [action],
  );
  return rows[0];
}
