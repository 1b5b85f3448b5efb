import {
  type Client,
  isGrpcServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import type { UpkeepTaskName, DeliverGroup, DeliverMessage, Schedule } from '../../workflows/index.ts';
import { maskAddress, maskNumber } from '../lib/mask.ts';
import type { RetryPolicy } from '../domain/email/retry.ts';
import type { EmailRow, GroupRow, MaintenanceRow, MessageRow, OutboxRow } from '../store/outbox/outbox.ts';
import type { Tracer } from '../telemetry/tracer.ts';
import { TemporalUnreachable } from './relay.ts';

const ORG_ID = defineSearchAttributeKey('OrgId', 'KEYWORD');
const CHANNEL = defineSearchAttributeKey('Channel', 'KEYWORD');
const BATCH_ID = defineSearchAttributeKey('BatchId', 'KEYWORD');

/** The search attributes that a namespace must have before workflows can start. */
export const SEARCH_ATTRIBUTES = ['OrgId', 'Channel', 'Provider', 'BatchId'] as const;

/**
 * The task queues of workflows. Those of single messages share the queue of their activities, so that one worker does both in
 * one workflow task.
 */
const QUEUES = { groups: 'messages', upkeep: 'messages', email: 'email', chat: 'chat' } as const;
/** The timeout of one request. Its row is locked meanwhile. */
const REQUEST_TIMEOUT_MS = 10_000;

/** Priority keys of workflows and their activities; Temporal runs lower ones first. */
const SINGLE_PRIORITY = 2;
const BULK_PRIORITY = 4;

/**
 * Turns outbox rows into requests to Temporal. Each request is idempotent.
 * @param tracer set when tracing is enabled
 */
export function makeTemporalDispatcher(
  client: Client,
  retry: RetryPolicy,
  tracer?: Tracer,
): (row: OutboxRow) => Promise<void> {
  const { workflow } = client;

  /** @param isRestart the email may have had a workflow before. The claim, not the workflow id, prevents a second send. */
  async function start(row: EmailRow, isRestart: boolean): Promise<void> {
    if (!row.open) return;
    await ignoreAlreadyStarted(
      workflow.start<(input: DeliverMessage) => Promise<unknown>>('deliverEmail', {
        ...emailOptions(row, retry),
        workflowIdReusePolicy: isRestart ? 'ALLOW_DUPLICATE' : 'REJECT_DUPLICATE',
      }),
    );
  }

  async function group(row: GroupRow): Promise<void> {
    await ignoreAlreadyStarted(
      workflow.start<(input: DeliverGroup) => Promise<unknown>>('deliverGroup', {
        ...groupOptions(row, retry),
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
      }),
    );
  }

  /** Also starts the workflow if there is none, for example for an email that its group delivered until now. */
  async function reschedule(row: EmailRow): Promise<void> {
    if (!row.open) return;
    await workflow.signalWithStart<(input: DeliverMessage) => Promise<unknown>, [Schedule]>('deliverEmail', {
      ...emailOptions(row, retry),
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      signal: 'reschedule',
      signalArgs: [{ version: row.version, dueAt: row.due_at }],
    });
  }

  async function cancel(row: EmailRow): Promise<void> {
    // The workflow of a group finds canceled members when it is due.
    if (row.workflow_id !== row.message_id) return;
    await ignoreNotFound(workflow.getHandle(row.message_id).signal('cancel'));
  }

  /** If the task is running already and has missed this work, the next scheduled run does it. */
  async function runUpkeepTask({ message_id: name }: MaintenanceRow): Promise<void> {
    await ignoreAlreadyStarted(
      workflow.start<(tasks: readonly UpkeepTaskName[]) => Promise<unknown>>('upkeep', {
        workflowId: `upkeep-${name}`,
        taskQueue: QUEUES.upkeep,
        args: [[name as UpkeepTaskName]],
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      }),
    );
  }

  async function message(row: MessageRow): Promise<void> {
    if (row.action === 'message_cancel') {
      await ignoreNotFound(workflow.getHandle(row.message_id).signal('cancel'));
      return;
    }
    if (!row.open) return;
    const type = WORKFLOWS[row.channel];
    if (row.action === 'message_reschedule') {
      await workflow.signalWithStart<(input: DeliverMessage) => Promise<unknown>, [Schedule]>(type, {
        ...messageOptions(row, retry),
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
        signal: 'reschedule',
        signalArgs: [{ version: row.version, dueAt: row.due_at }],
      });
      return;
    }
    await ignoreAlreadyStarted(
      workflow.start<(input: DeliverMessage) => Promise<unknown>>(type, {
        ...messageOptions(row, retry),
        workflowIdReusePolicy: row.action === 'message_again' ? 'ALLOW_DUPLICATE' : 'REJECT_DUPLICATE',
      }),
    );
  }

  const actions = {
    start: (row: EmailRow) => start(row, false),
    leave: (row: EmailRow) => start(row, true),
    reschedule,
    cancel,
  };
  const send = (row: OutboxRow): Promise<void> => {
    if (row.action === 'group') return group(row);
    if (isAboutMessage(row)) return message(row);
    return row.action === 'chore' ? runUpkeepTask(row) : actions[row.action](row);
  };
  return async (row) => {
    const request = () => traced(tracer, row, () => send(row));
    try {
      await client.connection.withDeadline(Date.now() + REQUEST_TIMEOUT_MS, request);
    } catch (error) {
      throw isTemporary(error) ? new TemporalUnreachable('Temporal cannot be reached', { cause: error }) : error;
    }
  };
}

/** Continues the traces of the API requests. A group with members of several requests gets a new trace with links to theirs. */
async function traced(tracer: Tracer | undefined, row: OutboxRow, send: () => Promise<void>): Promise<void> {
  if (!tracer) return send();
  const attributes = { 'sendwright.workflow.id': row.message_id, 'sendwright.outbox.action': row.action };
  if (row.action === 'group' && row.traceparents.length > 0) {
    const [first, ...others] = row.traceparents;
    const members = { 'sendwright.messages': row.members.length };
    // Members of one request, for example of a batch, stay in its trace.
    const origin = others.length === 0 ? { parent: first } : { links: row.traceparents };
    return tracer.span('start group', { kind: 'producer', ...origin, attributes: { ...attributes, ...members } }, send);
  }
  if (!('traceparent' in row) || row.traceparent === null) return send();
  const request = isAboutMessage(row) ? MESSAGE_REQUESTS[row.action] : row.action;
  return tracer.span(`${request} message`, { kind: 'producer', parent: row.traceparent, attributes }, send);
}

async function ignoreAlreadyStarted(starting: Promise<unknown>): Promise<void> {
  try {
    await starting;
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

/** Ignores that a workflow has ended, because it then needs neither a signal nor a termination. */
export async function ignoreNotFound(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}

function emailOptions(row: EmailRow, retry: RetryPolicy) {
  const { version, due_at, message_id: id } = row;
  const more = row.more_to > 0 ? ` and ${row.more_to} more` : '';
  return {
    ...options(row, row.batch_id !== null, QUEUES.email),
    args: [{ id, version, dueAt: due_at, retry, firstAttempt: 'local' }] as [DeliverMessage],
    staticSummary: `Email to ${maskAddress(row.first_to)}${more}, ${due(due_at)}`,
  };
}

function groupOptions(row: GroupRow, retry: RetryPolicy) {
  const { members, due_at, message_id: id } = row;
  const batch = row.batch_id === null ? '' : ` of batch ${row.batch_id}`;
  const taskQueue = row.bulk ? 'email-groups' : 'email-bursts';
  return {
    ...options(row, row.bulk, QUEUES.groups),
    args: [{ id, members, dueAt: due_at, retry, taskQueue }] as [DeliverGroup],
    staticSummary: `${members.length === 1 ? '1 email' : `${members.length} emails`}${batch}, ${due(due_at)}`,
  };
}

/** The names of requests about messages in spans. */
const MESSAGE_REQUESTS: Readonly<Record<MessageRow['action'], string>> = {
  message: 'start',
  message_again: 'start',
  message_reschedule: 'reschedule',
  message_cancel: 'cancel',
};

/** The workflow types of messages, by channel. */
const WORKFLOWS = { chatapp: 'deliverChat', sms: 'deliverSms' } as const;

function isAboutMessage(row: OutboxRow): row is MessageRow {
  return 'channel' in row;
}

function messageOptions(row: MessageRow, retry: RetryPolicy) {
  const { message_id: id, org_id, channel, to, type, version, due_at: dueAt } = row;
  const name = channel === 'sms' ? 'SMS' : `Chat-app message (${type})`;
  return {
    workflowId: id,
    taskQueue: QUEUES.chat,
    args: [{ id, version, dueAt, retry, firstAttempt: 'local' }] as [DeliverMessage],
    priority: { priorityKey: SINGLE_PRIORITY, fairnessKey: org_id },
    typedSearchAttributes: new TypedSearchAttributes([
      { key: CHANNEL, value: channel },
      { key: ORG_ID, value: org_id },
    ]),
    staticSummary: `${name} to ${maskNumber(to)}, ${due(dueAt)}`,
  };
}

function due(at: string | null): string {
  return at === null ? 'immediately' : `at ${at}`;
}

/** The start options of every workflow that delivers email. */
function options({ message_id, org_id, batch_id }: EmailRow | GroupRow, bulk: boolean, taskQueue: string) {
  return {
    workflowId: message_id,
    taskQueue,
    priority: { priorityKey: bulk ? BULK_PRIORITY : SINGLE_PRIORITY, ...(org_id !== null && { fairnessKey: org_id }) },
    typedSearchAttributes: new TypedSearchAttributes([
      { key: CHANNEL, value: 'email' },
      ...(org_id === null ? [] : [{ key: ORG_ID, value: org_id }]),
      ...(batch_id === null ? [] : [{ key: BATCH_ID, value: batch_id }]),
    ]),
  };
}

/** gRPC status codes that report a problem of the server or the network, not of the request. */
const TEMPORARY_CODES = new Set([1, 4, 8, 14]);

function isTemporary(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (isGrpcServiceError(cause)) return TEMPORARY_CODES.has(cause.code);
  }
  return false;
}
