import { cacheFor } from '../lib/cached.ts';
import { findSuspendedEmails, hasSuspended } from '../store/accounts/suspension.ts';
import { gather } from '../store/postgres/gather.ts';
import type { Pool } from '../store/postgres/pool.ts';

/** For this long, links do not notice that the first organization was suspended. */
const FRESH_MS = 30_000;
const MAX_EMAILS_PER_STATEMENT = 500;
/** Links work without the database: a redirect waits for it at most this long. */
const MAX_WAIT_MS = 1_000;

/**
 * Makes the function that returns true if the organization of an email is suspended. Its links lead nowhere then, since they begin with
 * the operator's name. It reads nothing of the email while no organization is suspended, and returns false while the database is away.
 */
export function makeIsSuspendedLink(pool: Pool): (emailId: string) => Promise<boolean> {
  const hasAny = cacheFor(FRESH_MS, () => hasSuspended(pool));
  const find = gather(async (ids: readonly string[]) => {
    const suspended = await findSuspendedEmails(pool, ids);
    return ids.map((id) => suspended.has(id));
  }, MAX_EMAILS_PER_STATEMENT);
  const look = async (emailId: string): Promise<boolean> => (await hasAny()) && (await find(emailId));
  return async (emailId) => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => (timer = setTimeout(resolve, MAX_WAIT_MS, false)));
    try {
      return await Promise.race([look(emailId), late]);
    } catch {
      return false;
    } finally {
      clearTimeout(timer);
    }
  };
}
