import { type Acceptance, acceptEmails, type NewEmail } from '../store/emails/emails.ts';
import { gather } from '../store/postgres/gather.ts';
import type { Pool } from '../store/postgres/pool.ts';

/** Whose request it is. */
export interface Caller {
  readonly orgId: string;
  /** The only domains it may send from, or null for every domain of its organization. */
  readonly domainIds: readonly string[] | null;
}

/** Stores an email that came by itself; says what became of it when that is committed. */
export type StoreEmail = (caller: Caller, email: NewEmail) => Promise<Acceptance>;

/** Emails of one statement at most. */
const AT_ONCE = 100;

/** Emails of one caller that come while others of his are being stored share a statement and its commit. */
export function gatherEmails(pool: Pool): StoreEmail {
  const callers = new Map<string, (email: NewEmail) => Promise<Acceptance>>();

  return ({ orgId, domainIds }, email) => {
    const name = JSON.stringify([orgId, domainIds]);
    let store = callers.get(name);
    if (!store) {
      const write = (emails: readonly NewEmail[]) => storeTogether(pool, { orgId, domainIds }, emails);
      store = gather(write, AT_ONCE, () => callers.delete(name));
      callers.set(name, store);
    }
    return store(email);
  };
}

async function storeTogether(
  pool: Pool,
  { orgId, domainIds }: Caller,
  emails: readonly NewEmail[],
): Promise<Acceptance[]> {
  const answers = await acceptEmails(pool, orgId, domainIds, emails);
  // Then none was stored. It may reach for some of them: each is tried by itself.
  if (emails.length > 1 && answers.some(({ refusal }) => refusal === 'quota_exceeded')) {
    throw new Error('the quota does not reach for all of these emails');
  }
  return answers;
}
