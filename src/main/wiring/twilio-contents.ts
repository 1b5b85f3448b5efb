import type { Logger } from 'pino';
import type { TwilioAccount } from '../../providers/twilio/client.ts';
import { fetchTwilioTemplates, type TwilioContent } from '../../providers/twilio/templates.ts';
import { addContents, findContent } from '../../store/chat/contents.ts';
import type { Pool } from '../../store/postgres/pool.ts';

/** Milliseconds before Twilio is asked again for the templates of a number. */
const ASK_EVERY = 60_000;
/** Numbers of which it is known when Twilio was asked. */
const KEPT = 10_000;

/**
 * Finds which content at Twilio a template of a number is: in our table, and where that has none, in Twilio's own list,
 * which is then kept. What was put into the table by hand stays.
 */
export function makeContents(
  pool: Pool,
  log: Logger,
  fetchTemplates: typeof fetchTwilioTemplates = fetchTwilioTemplates,
): (numberId: string, account: TwilioAccount, name: string, language: string) => Promise<TwilioContent | undefined> {
  const asked = new Map<string, { readonly at: number; readonly done: Promise<void> }>();

  async function fill(numberId: string, account: TwilioAccount): Promise<void> {
    const templates = await fetchTemplates(account);
    await addContents(pool, numberId, templates);
    log.info({ number: numberId, templates: templates.length }, 'fetched the templates of a number from Twilio');
  }

  return async (numberId, account, name, language) => {
    const known = await findContent(pool, numberId, name, language);
    if (known) return known;
    let last = asked.get(numberId);
    if (!last || performance.now() - last.at > ASK_EVERY) {
      if (asked.size >= KEPT) asked.clear();
      last = { at: performance.now(), done: fill(numberId, account) };
      asked.set(numberId, last);
    }
    try {
      await last.done;
    } catch (error) {
      // The next message asks again.
      asked.delete(numberId);
      throw error;
    }
    return findContent(pool, numberId, name, language);
  };
}
