import {
  type Client,
  isGrpcServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import type { DeliverEmail, Schedule } from '../../workflows/index.ts';
import { maskAddress } from '../domain/mask.ts';
import type { RetryPolicy } from '../domain/retry.ts';
import type { OutboxRow } from '../store/outbox.ts';
import { TemporalUnreachable } from './relay.ts';

const ORG_ID = defineSearchAttributeKey('OrgId', 'KEYWORD');
const CHANNEL = defineSearchAttributeKey('Channel', 'KEYWORD');
const BATCH_ID = defineSearchAttributeKey('BatchId', 'KEYWORD');

/** The search attributes that a namespace must have before workflows start. */
export const SEARCH_ATTRIBUTES = ['OrgId', 'Channel', 'Provider', 'BatchId'] as const;

/** The task queue of workflows; activities have queues of their own. */
const WORKFLOW_QUEUE = 'messages';
/** Milliseconds for one request. A row is held meanwhile. */
const DEADLINE = 10_000;

/** Turns outbox rows into requests to Temporal. Each may be repeated: a workflow that was started is not started again. */
export function temporalCarrier(client: Client, retry: RetryPolicy): (row: OutboxRow) => Promise<void> {
  const { workflow } = client;

  async function start(row: OutboxRow): Promise<void> {
    if (!row.open) return;
    try {
      await workflow.start<(input: DeliverEmail) => Promise<unknown>>('deliverEmail', {
        ...options(row, retry),
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
      });
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
  }

  /** Also starts the workflow when there is none: what guards against sending twice is the claim, not the id. */
  async function reschedule(row: OutboxRow): Promise<void> {
    if (!row.open) return;
    await workflow.signalWithStart<(input: DeliverEmail) => Promise<unknown>, [Schedule]>('deliverEmail', {
      ...options(row, retry),
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      signal: 'reschedule',
      signalArgs: [{ version: row.version, dueAt: row.due_at }],
    });
  }

  async function cancel(row: OutboxRow): Promise<void> {
    try {
      await workflow.getHandle(row.message_id).signal('cancel');
    } catch (error) {
      // Nobody waits for it, so nobody needs to be told.
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  }

  const actions = { start, reschedule, cancel };
  return async (row) => {
    try {
      await client.connection.withDeadline(Date.now() + DEADLINE, () => actions[row.action](row));
    } catch (error) {
      throw isTemporary(error) ? new TemporalUnreachable('Temporal cannot be reached', { cause: error }) : error;
    }
  };
}

function options(row: OutboxRow, retry: RetryPolicy) {
  const { org_id, batch_id, version, due_at, message_id: id } = row;
  const more = row.more_to > 0 ? ` and ${row.more_to} more` : '';
  const due = due_at === null ? 'at once' : `at ${due_at}`;
  return {
    workflowId: id,
    taskQueue: WORKFLOW_QUEUE,
    args: [{ id, version, dueAt: due_at, retry }] as [DeliverEmail],
    staticSummary: `Email to ${maskAddress(row.first_to)}${more}, ${due}`,
    typedSearchAttributes: new TypedSearchAttributes([
      { key: ORG_ID, value: org_id },
      { key: CHANNEL, value: 'email' },
      ...(batch_id === null ? [] : [{ key: BATCH_ID, value: batch_id }]),
    ]),
  };
}

/** gRPC status codes that speak of the server or the way to it, not of the request. */
const TEMPORARY = new Set([1, 4, 8, 14]);

function isTemporary(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (isGrpcServiceError(at)) return TEMPORARY.has(at.code);
  }
  return false;
}
