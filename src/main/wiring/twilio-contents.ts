import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { TwilioContent } from '../../domain/chat/chat.ts';
import type { TwilioAccount } from '../../providers/twilio/client.ts';
import { fetchTwilioTemplates } from '../../providers/twilio/templates.ts';
import { addContents, findContent } from '../../store/chat/contents.ts';
import type { Pool } from '../../store/postgres/pool.ts';

/** Minimum interval between fetches of a number's templates. */
const FETCH_INTERVAL_MS = 60_000;
/** Maximum number of numbers whose last fetch is remembered. */
const MAX_TRACKED_NUMBERS = 10_000;

/**
 * Finds the Twilio content of a template in our table; otherwise fetches the templates of the number from Twilio and stores
 * them. Preserves entries that the operator added.
 */
export function makeContents(
  pool: Pool,
  log: Logger,
  fetchTemplates: typeof fetchTwilioTemplates = fetchTwilioTemplates,
): (numberId: string, account: TwilioAccount, name: string, language: string) => Promise<TwilioContent | undefined> {
  const fetches = new LRUCache<string, Promise<void>>({ max: MAX_TRACKED_NUMBERS, ttl: FETCH_INTERVAL_MS });

  async function fill(numberId: string, account: TwilioAccount): Promise<void> {
    const templates = await fetchTemplates(account);
    await addContents(pool, numberId, templates, 'keep');
    log.info({ number: numberId, templates: templates.length }, 'fetched templates from Twilio');
  }

  return async (numberId, account, name, language) => {
    const stored = await findContent(pool, numberId, name, language);
    if (stored) return stored;
    let fetching = fetches.get(numberId);
    if (!fetching) fetches.set(numberId, (fetching = fill(numberId, account)));
    try {
      await fetching;
    } catch (error) {
      // A failed fetch is forgotten, so that the next message retries it.
      fetches.delete(numberId);
      throw error;
    }
    return findContent(pool, numberId, name, language);
  };
}
