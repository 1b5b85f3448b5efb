import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { projectChatReports } from '../projection/chat.ts';
import type { ChatProvider } from '../providers/chat-provider.ts';
import { findChats, type SendingNumber, type StoredChat } from '../store/chat/attempts.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { findOverdueChats, findUnreportedChats, scheduleNextChatCheck, putBackChats } from '../store/chat/stuck.ts';
import { rescued } from '../telemetry/topics.ts';
import { toStep, type UpkeepStep } from './task.ts';
import type { Workflows } from './workflow-state.ts';

/** The dependencies of the maintenance tasks for chat-app messages. */
export interface ChatUpkeepDeps {
  readonly pool: Pool;
  readonly providerOf: (number: SendingNumber) => ChatProvider;
  /** The time between two requests to a provider; 100 ms by default. */
  readonly requestIntervalMs?: number;
  readonly workflows: Workflows;
  readonly log: Logger;
}

/** Messages per step whose reports are fetched. */
const REPORTS_PER_STEP = 100;
const REQUEST_INTERVAL_MS = 100;
/** Messages per step whose workflows are looked up. */
const OVERDUE_PER_STEP = 200;

/** Maintenance tasks that recover lost provider reports and lost workflows. */
export function makeChatUpkeep(deps: ChatUpkeepDeps) {
  return {
    /** Fetches the status of messages for which a report from Twilio is overdue. */
    async reconcileChats(): Promise<UpkeepStep> {
      const { pool, log, requestIntervalMs = REQUEST_INTERVAL_MS } = deps;
      const ids = await findUnreportedChats(pool, REPORTS_PER_STEP);
      let asked = 0;
      try {
        for (const message of await findChats(pool, ids)) {
          asked++;
          await Promise.all([fetchReport(deps, message), sleep(requestIntervalMs)]);
        }
      } finally {
        // Also after a failure, so that the message does not block the others in the next step.
        await scheduleNextChatCheck(pool, ids);
        if (ids.length > 0) log.info({ messages: ids.length, asked }, 'fetched overdue message statuses');
      }
      return toStep(ids.length, REPORTS_PER_STEP);
    },

    /** Starts a new workflow for overdue messages whose workflow was lost, closed early or makes no progress. */
    async putBackOverdueChats(): Promise<UpkeepStep> {
      const { pool, workflows, log } = deps;
      const ids = await findOverdueChats(pool, OVERDUE_PER_STEP);
      for (const id of ids) {
        const state = await workflows.describe(id);
        if (state === 'running') continue;
        if (state === 'idle' || state === 'failing') await workflows.terminate(id, 'replaced by upkeep: no progress');
        const open = await putBackChats(pool, [id]);
        if (open.length === 0) continue;
        rescued.publish({ kind: 'chatapp', state, count: open.length });
        log.warn({ message: id, state }, 'started a new workflow for an overdue message');
      }
      await scheduleNextChatCheck(pool, ids);
      return toStep(ids.length, OVERDUE_PER_STEP);
    },
  };
}

/** Catches errors, so that one unreachable provider does not block the messages of other numbers. */
async function fetchReport({ pool, providerOf, log }: ChatUpkeepDeps, message: StoredChat): Promise<void> {
  const { id, number, provider_message_id: providerMessageId } = message;
  if (!number || providerMessageId === null) return;
  const provider = providerOf(number);
  try {
    const report = await provider.report?.(message, providerMessageId);
    if (report) await projectChatReports(pool, provider.name, [{ ...report, messageId: id }]);
  } catch (error) {
    log.warn(
      { message: id, provider: provider.name, reason: (error as Error).message },
      'could not fetch message status from provider',
    );
  }
}
