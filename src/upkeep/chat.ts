import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { projectChatReports } from '../projection/chat.ts';
import type { ChatProvider } from '../providers/chat-provider.ts';
import { findChats, type SendingNumber, type StoredChat } from '../store/chat/attempts.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { findOverdueChats, findUnreportedChats, noteChatLooks, putBackChats } from '../store/chat/stuck.ts';
import { rescued } from '../telemetry/topics.ts';
import type { UpkeepStep } from './task.ts';
import type { Workflows } from './workflow-state.ts';

/** What it takes to find out about stuck chat-app messages. */
export interface ChatChoreDeps {
  readonly pool: Pool;
  readonly providerOf: (number: SendingNumber) => ChatProvider;
  /** Milliseconds between two questions to a provider; 100 by default. */
  readonly pace?: number;
  readonly workflows: Workflows;
  readonly log: Logger;
}

/** Questions of one step. */
const QUESTIONS = 100;
const PACE = 100;
/** Messages of one step whose workflows are looked up. */
const AT_ONCE = 200;

/** Chores that set right what was lost on the way: reports of a provider, and workflows. */
export function makeChatChores(deps: ChatChoreDeps) {
  return {
    /** Asks Twilio about messages of which it should have reported more by now, and notes what it says. */
    async reconcileChats(): Promise<UpkeepStep> {
      const { pool, log, pace = PACE } = deps;
      const ids = await findUnreportedChats(pool, QUESTIONS);
      let asked = 0;
      try {
        for (const message of await findChats(pool, ids)) {
          asked++;
          await Promise.all([askAbout(deps, message), sleep(pace)]);
        }
      } finally {
        // Also one that cannot be asked about: it shall not stand in the way of the others the next time.
        await noteChatLooks(pool, ids);
        if (ids.length > 0) log.info({ messages: ids.length, asked }, 'asked about messages that were not reported');
      }
      return { done: ids.length, next: ids.length === QUESTIONS ? '' : null };
    },

    /** Gives messages that are overdue a new workflow when theirs was lost, closed early or makes no progress. */
    async putBackOverdueChats(): Promise<UpkeepStep> {
      const { pool, workflows, log } = deps;
      const ids = await findOverdueChats(pool, AT_ONCE);
      for (const id of ids) {
        const state = await workflows.describe(id);
        if (state === 'running') continue;
        if (state === 'idle' || state === 'failing') await workflows.terminate(id, 'replaced by upkeep: no progress');
        const open = await putBackChats(pool, [id]);
        if (open.length === 0) continue;
        rescued.publish({ kind: 'chatapp', state, count: open.length });
        log.warn({ message: id, state }, 'an overdue message gets a new workflow');
      }
      await noteChatLooks(pool, ids);
      return { done: ids.length, next: ids.length === AT_ONCE ? '' : null };
    },
  };
}

/** One number whose provider cannot be asked now holds up no other. */
async function askAbout({ pool, providerOf, log }: ChatChoreDeps, message: StoredChat): Promise<void> {
  const { id, number, provider_message_id: providerMessageId } = message;
  if (!number || providerMessageId === null) return;
  const provider = providerOf(number);
  try {
    const report = await provider.report?.(message, providerMessageId);
    if (report) await projectChatReports(pool, provider.name, [{ ...report, messageId: id }]);
  } catch (error) {
    log.warn(
      { message: id, provider: provider.name, reason: (error as Error).message },
      'a message cannot be asked about',
    );
  }
}
