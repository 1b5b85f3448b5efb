import { type Acceptance, acceptEmails, type NewEmail } from '../store/emails/accept.ts';
import { gather } from '../store/postgres/gather.ts';
import type { Pool } from '../store/postgres/pool.ts';

/** The organization and restrictions of a request. */
export interface Caller {
  readonly orgId: string;
  /** The only domains that it may send from; null for every domain of its organization. */
  readonly domainIds: readonly string[] | null;
}

/** Stores a single email; resolves with the result after the commit. */
export type StoreEmail = (caller: Caller, email: NewEmail) => Promise<Acceptance>;

/** Emails per statement. */
const MAX_GROUP_SIZE = 100;

/** Groups emails of one caller that arrive while others are being stored into one statement and commit. */
export function gatherEmails(pool: Pool): StoreEmail {
  const callers = new Map<string, (email: NewEmail) => Promise<Acceptance>>();

  return ({ orgId, domainIds }, email) => {
    const name = JSON.stringify([orgId, domainIds]);
    let store = callers.get(name);
    if (!store) {
      const write = (emails: readonly NewEmail[]) => storeTogether(pool, { orgId, domainIds }, emails);
      store = gather(write, MAX_GROUP_SIZE, () => callers.delete(name));
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
  // None was stored. The quota may suffice for some of them, so each is tried alone.
  if (emails.length > 1 && answers.some(({ refusal }) => refusal === 'quota_exceeded')) {
    throw new Error('the quota does not reach for all of these emails');
  }
  return answers;
}
