import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { TwilioContent } from '../../domain/chat/chat.ts';
import type { TwilioAccount } from '../../providers/twilio/client.ts';
import { fetchTwilioTemplates, type TwilioTemplate } from '../../providers/twilio/templates.ts';
import { addContents, findContent } from '../../store/chat/contents.ts';
import type { Pool } from '../../store/postgres/pool.ts';

/** Minimum interval between fetches of a number's templates. */
const FETCH_INTERVAL_MS = 60_000;
/** Maximum number of numbers whose last fetch is remembered. */
const MAX_TRACKED_NUMBERS = 10_000;

/**
 * Finds the Twilio content of a template in our table; otherwise fetches the templates of the number from Twilio. Stores those
 * that are approved, since others may be replaced. Preserves entries that the operator added.
 */
export function makeContents(
  pool: Pool,
  log: Logger,
  fetchTemplates: typeof fetchTwilioTemplates = fetchTwilioTemplates,
): (numberId: string, account: TwilioAccount, name: string, language: string) => Promise<TwilioContent | undefined> {
  const fetches = new LRUCache<string, Promise<TwilioTemplate[]>>({ max: MAX_TRACKED_NUMBERS, ttl: FETCH_INTERVAL_MS });

  /** @returns the templates that were not stored */
  async function fill(numberId: string, account: TwilioAccount): Promise<TwilioTemplate[]> {
    const templates = await fetchTemplates(account);
    const approved = templates.filter(({ isApproved }) => isApproved);
    await addContents(pool, numberId, approved, 'keep');
    log.info(
      { number: numberId, templates: templates.length, approved: approved.length },
      'fetched templates from Twilio',
    );
    return templates.filter(({ isApproved }) => !isApproved);
  }

  return async (numberId, account, name, language) => {
    const stored = await findContent(pool, numberId, name, language);
    if (stored) return stored;
    let fetching = fetches.get(numberId);
    if (!fetching) fetches.set(numberId, (fetching = fill(numberId, account)));
    let unapproved: readonly TwilioTemplate[];
    try {
      unapproved = await fetching;
    } catch (error) {
      // A failed fetch is forgotten, so that the next message retries it.
      fetches.delete(numberId);
      throw error;
    }
    const content = await findContent(pool, numberId, name, language);
    return content ?? unapproved.find((template) => template.name === name && template.language === language);
  };
}
