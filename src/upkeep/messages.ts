import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { groupBy } from '../lib/group.ts';
import { mapConcurrently } from '../lib/map-concurrently.ts';
import { projectMessageReports } from '../projection/messages.ts';
import type { ChatProvider } from '../providers/chat-provider.ts';
import type { EmailContents } from '../store/emails/contents.ts';
import { findMessages, type SendingNumber, type StoredMessage } from '../store/messages/delivery.ts';
import type { Pool } from '../store/postgres/pool.ts';
import {
  findOverdueMessages,
  findUnreported,
  type OverdueMessage,
  requeueMessages,
  scheduleNextMessageCheck,
} from '../store/messages/stuck.ts';
import { messagesRescued } from '../telemetry/topics.ts';
import { STEP_DEADLINE_MS, toStep, type UpkeepStep } from './task.ts';
import { MAX_CONCURRENT_REQUESTS, type Workflows, type WorkflowState } from './workflow-state.ts';

export interface MessageUpkeepDeps {
  readonly pool: Pool;
  readonly contents: EmailContents;
  readonly providerOf: (number: SendingNumber) => ChatProvider;
  /** The time between two requests to a provider; 100 ms by default. */
  readonly requestIntervalMs?: number;
  readonly workflows: Workflows;
  readonly log: Logger;
}

const REPORTS_PER_STEP = 100;
const REQUEST_INTERVAL_MS = 100;
const OVERDUE_PER_STEP = 200;

/** Maintenance tasks that recover lost provider reports and lost workflows. */
export function makeMessageUpkeep(deps: MessageUpkeepDeps) {
  return {
    /** Fetches the status of messages for which a report from Twilio is overdue. */
    async reconcileChats(): Promise<UpkeepStep> {
      const { pool, log, requestIntervalMs = REQUEST_INTERVAL_MS } = deps;
      const ids = await findUnreported(pool, REPORTS_PER_STEP);
      const messages = await findMessages(pool, deps.contents, ids);
      const asked: string[] = [];
      const deadline = performance.now() + STEP_DEADLINE_MS;
      try {
        for (const message of messages) {
          if (performance.now() > deadline) break;
          // Before the request: a message that fails must not block the others in the next step.
          asked.push(message.id);
          await Promise.all([fetchReport(deps, message), sleep(requestIntervalMs)]);
        }
      } finally {
        await scheduleNextMessageCheck(pool, asked);
        if (ids.length > 0) log.info({ messages: ids.length, asked: asked.length }, 'fetched overdue message statuses');
      }
      return toStep(asked.length, REPORTS_PER_STEP, ids.length);
    },

    /** Starts a new workflow for overdue messages whose workflow was lost, closed early or makes no progress. */
    async putBackOverdueChats(): Promise<UpkeepStep> {
      const overdue = await findOverdueMessages(deps.pool, OVERDUE_PER_STEP);
      const ofWorkflows = groupBy(overdue, (message) => message.workflow_id);
      // A workflow that fails does not block the others.
      await mapConcurrently(ofWorkflows, MAX_CONCURRENT_REQUESTS, async ([workflowId, messages]) => {
        const state = await deps.workflows.describe(workflowId);
        if (state !== 'running') await putBack(deps, workflowId, messages, state);
        await scheduleNextMessageCheck(
          deps.pool,
          messages.map(({ id }) => id),
        );
      });
      return toStep(overdue.length, OVERDUE_PER_STEP);
    },
  };
}

async function putBack(
  { pool, workflows, log }: MessageUpkeepDeps,
  workflowId: string,
  messages: readonly OverdueMessage[],
  state: Exclude<WorkflowState, 'running'>,
): Promise<void> {
  if (state === 'idle' || state === 'failing') await workflows.terminate(workflowId);
  const ids = messages.map(({ id }) => id);
  const open = await requeueMessages(pool, ids, state === 'closed');
  // All members of a group are of one channel.
  const [first] = messages;
  if (open.length === 0 || !first) return;
  messagesRescued.publish({ kind: first.channel, state, count: open.length });
  log.warn({ message: open[0], messages: open.length, state }, 'started a new workflow for an overdue message');
}

/** Catches errors, so that one unreachable provider does not block the messages of other numbers. */
async function fetchReport({ pool, providerOf, log }: MessageUpkeepDeps, message: StoredMessage): Promise<void> {
  const { id, number, provider_message_id: providerMessageId } = message;
  if (!number || providerMessageId === null) return;
  const provider = providerOf(number);
  try {
    const report = await provider.report?.(message, providerMessageId);
    if (report) await projectMessageReports(pool, provider.name, [{ ...report, messageId: id }]);
  } catch (error) {
    log.warn(
      { message: id, provider: provider.name, reason: (error as Error).message },
      'could not fetch message status from provider',
    );
  }
}
