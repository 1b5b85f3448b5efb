import type { Logger } from 'pino';
import type { LookUp } from '../store/emails/stuck.ts';
import { type Db, isUnreachable, type Pool, transaction } from '../store/postgres/pool.ts';
import { markRecentEmails, markRecentMessages, readTimeline, replaceTimeline } from '../store/upkeep/forgotten.ts';

interface FailOverDeps {
  readonly pool: Pool;
  readonly lookUp: LookUp;
  /** The providers of chat-app messages and SMS that can be asked. */
  readonly messageProviders: readonly string[];
  readonly log: Logger;
}

/**
 * Returns the function that looks for a fail-over before a worker begins attempts. A replica that lagged has forgotten attempts and
 * their results: what may have been sent in the last minutes is made ambiguous, so that its provider is asked. Messages of providers
 * that cannot be asked are left as they are.
 */
export function makeFailOverCheck(deps: FailOverDeps): (session: Db) => Promise<void> {
  const { pool, lookUp, messageProviders, log } = deps;
  return async (session) => {
    const timeline = await readTimeline(session).catch((error: unknown) => {
      if (isUnreachable(error)) throw error;
      log.warn({ err: error }, 'timeline of Postgres cannot be read, fail-overs are not noticed');
    });
    if (timeline === undefined) return;
    const marked = await transaction(pool, async (client) => {
      if (!(await replaceTimeline(client, timeline))) return undefined;
      const emails = lookUp.canBeAsked ? await markRecentEmails(client, lookUp.provider) : 0;
      return { emails, messages: await markRecentMessages(client, messageProviders) };
    });
    if (marked)
      log.warn({ timeline, ...marked }, 'Postgres has failed over, providers are asked about recent messages');
  };
}
