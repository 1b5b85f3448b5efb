import { type Acceptance, acceptEmails, type NewEmail } from '../store/emails.ts';
import { gather } from '../store/gather.ts';
import type { Pool } from '../store/pool.ts';

/** Whose request it is. */
export interface Caller {
  readonly orgId: string;
  /** The only domains it may send from, or null for every domain of its organization. */
  readonly domainIds: readonly string[] | null;
}

/** Stores an email that came by itself; says what became of it when that is committed. */
export type StoreEmail = (caller: Caller, email: NewEmail) => Promise<Acceptance>;

const LIMITS = { atOnce: 100, writers: 1 };

/** Emails of one caller that come while others of his are being stored share a statement and its commit. */
export function gatherEmails(pool: Pool): StoreEmail {
  const callers = new Map<string, (email: NewEmail) => Promise<Acceptance>>();

  return ({ orgId, domainIds }, email) => {
    const name = JSON.stringify([orgId, domainIds]);
    let store = callers.get(name);
    if (!store) {
      const write = (emails: readonly NewEmail[]) => storeTogether(pool, { orgId, domainIds }, emails);
      store = gather(write, LIMITS, () => callers.delete(name));
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
  const left = answers.filter(({ refusal }) => refusal === 'quota_exceeded');
  if (left.length < 2) return answers;
  // The quota does not reach for all of them together, but perhaps for the first.
  const again = [];
  for (const [index, answer] of answers.entries()) {
    const email = emails[index] as NewEmail;
    again.push(
      ...(answer.refusal === 'quota_exceeded' ? await acceptEmails(pool, orgId, domainIds, [email]) : [answer]),
    );
  }
  return again;
}
