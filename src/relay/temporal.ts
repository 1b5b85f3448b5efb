import {
  type Client,
  isGrpcServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { defineSearchAttributeKey, NamespaceNotFoundError, TypedSearchAttributes } from '@temporalio/common';
import type { UpkeepTaskName, DeliverGroup, DeliverMessage, Schedule } from '../../workflows/index.ts';
import { maskAddress, maskNumber } from '../lib/mask.ts';
import type { RetryPolicy } from '../domain/email/retry.ts';
import type { DeliveryRow, EmailRow, GroupRow, MaintenanceRow, MessageRow, OutboxRow } from '../store/outbox/outbox.ts';
import type { Tracer } from '../telemetry/tracer.ts';
import { TemporalUnreachable, WorkflowStillOpen } from './errors.ts';

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
/**
 * A restart is dispatched again this often, over 15 seconds, while the workflow has an open run. A run that was ending has ended by
 * then; a run that is still open counts as the restarted one. The alert about an old outbox fires later.
 */
const MAX_RESTART_TRIES = 4;

/** Priority keys of workflows and their activities; Temporal runs lower ones first. */
const SINGLE_PRIORITY = 2;
const LATE_PRIORITY = 3;
const BULK_PRIORITY = 4;

type Deliver = (input: DeliverMessage) => Promise<unknown>;

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

  /** Starts or signals the workflow that delivers an email or message. */
  async function requestDelivery(row: DeliveryRow): Promise<void> {
    const { action, message_id: id, tries, version, due_at: dueAt } = row;
    const request = REQUESTS[action];
    if (request === 'cancel') {
      // The workflow of a group finds canceled members when it is due.
      if (row.workflow_id !== id) return;
      try {
        await ignoreNotFound(workflow.getHandle(id).signal('cancel'));
      } catch (error) {
        // The workflow finds the canceled message when it is due.
        if (!isSignalLimitExceeded(error)) throw error;
      }
      return;
    }
    if (!row.is_open) return;
    const type = WORKFLOWS[isAboutEmail(row) ? 'email' : row.channel];
    const options = {
      ...(isAboutEmail(row) ? emailOptions(row) : messageOptions(row)),
      args: [{ id, version, dueAt, retry, firstAttempt: 'local' }] as [DeliverMessage],
    };
    if (request === 'reschedule') {
      const restart = { ...options, workflowIdReusePolicy: 'ALLOW_DUPLICATE' } as const;
      try {
        // Also starts the workflow if there is none, for example for an email that its group delivered until now.
        const signal = { signal: 'reschedule', signalArgs: [{ version, dueAt }] as [Schedule] };
        await workflow.signalWithStart<Deliver, [Schedule]>(type, { ...restart, ...signal });
      } catch (error) {
        if (!isSignalLimitExceeded(error)) throw error;
        await workflow.start<Deliver>(type, { ...restart, workflowIdConflictPolicy: 'TERMINATE_EXISTING' });
      }
      return;
    }
    // The run that sent a message may not have ended yet when the message is to be sent again, as its fallback template.
    const mayBeEnding = action === 'message_again' && tries < MAX_RESTART_TRIES;
    await ignoreAlreadyStarted(
      // It may have had a workflow before. The claim, not the workflow id, prevents a second send.
      workflow.start<Deliver>(type, { ...options, workflowIdReusePolicy: 'ALLOW_DUPLICATE' }),
      mayBeEnding,
    );
  }

  async function startGroup(row: GroupRow): Promise<void> {
    await ignoreAlreadyStarted(
      workflow.start<(input: DeliverGroup) => Promise<unknown>>('deliverGroup', {
        ...groupOptions(row, retry),
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
      }),
    );
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

  const send = (row: OutboxRow): Promise<void> => {
    if (row.action === 'group') return startGroup(row);
    return row.action === 'chore' ? runUpkeepTask(row) : requestDelivery(row);
  };
  return async (row) => {
    const request = () => traced(tracer, row, () => send(row));
    try {
      await client.connection.withDeadline(Date.now() + REQUEST_TIMEOUT_MS, request);
    } catch (error) {
      const reason = unreachableReason(error);
      throw reason === undefined ? error : new TemporalUnreachable(reason, { cause: error });
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
  return tracer.span(
    `${REQUESTS[row.action]} message`,
    { kind: 'producer', parent: row.traceparent, attributes },
    send,
  );
}

/** @throws WorkflowStillOpen if there is an open run that may be ending */
async function ignoreAlreadyStarted(starting: Promise<unknown>, mayBeEnding = false): Promise<void> {
  try {
    await starting;
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    if (mayBeEnding) throw new WorkflowStillOpen(error.message, { cause: error });
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

/** The request for each action about an email or message, by its name in spans. */
const REQUESTS = {
  start: 'start',
  leave: 'start',
  reschedule: 'reschedule',
  cancel: 'cancel',
  message: 'start',
  message_again: 'start',
  message_reschedule: 'reschedule',
  message_cancel: 'cancel',
} as const satisfies Record<DeliveryRow['action'], string>;

/** The workflow types by channel. */
const WORKFLOWS = { email: 'deliverEmail', chatapp: 'deliverChat', sms: 'deliverSms' } as const;

const NOUNS = {
  email: ['email', 'emails'],
  chatapp: ['chat-app message', 'chat-app messages'],
  sms: ['SMS', 'SMS'],
} as const;

function isAboutEmail(row: DeliveryRow): row is EmailRow {
  return !('channel' in row);
}

function emailOptions(row: EmailRow) {
  const more = row.more_to > 0 ? ` and ${row.more_to} more` : '';
  return {
    ...options(row, 'email', QUEUES.email, row.batch_id === null ? SINGLE_PRIORITY : BULK_PRIORITY),
    staticSummary: `Email to ${maskAddress(row.first_to)}${more}, ${due(row.due_at)}`,
  };
}

function messageOptions(row: MessageRow) {
  const { channel, to, type } = row;
  const name = channel === 'sms' ? 'SMS' : `Chat-app message (${type})`;
  return {
    ...options(row, channel, QUEUES.chat, SINGLE_PRIORITY),
    staticSummary: `${name} to ${maskNumber(to)}, ${due(row.due_at)}`,
  };
}

function groupOptions(row: GroupRow, retry: RetryPolicy) {
  const { members, channel, due_at, message_id: id, is_bulk, is_late } = row;
  const batch = row.batch_id === null ? '' : ` of batch ${row.batch_id}`;
  const [bursts, groups] =
    channel === 'email' ? (['email-bursts', 'email-groups'] as const) : (['chat-bursts', 'chat-groups'] as const);
  const taskQueue = is_bulk || is_late ? groups : bursts;
  const input = { id, members, dueAt: due_at, retry, taskQueue, ...(channel !== 'email' && { channel }) };
  const priority = is_late ? LATE_PRIORITY : SINGLE_PRIORITY;
  return {
    ...options(row, channel, QUEUES.groups, is_bulk ? BULK_PRIORITY : priority),
    args: [input] as [DeliverGroup],
    staticSummary: `${members.length} ${NOUNS[channel][members.length === 1 ? 0 : 1]}${batch}, ${due(due_at)}`,
  };
}

function due(at: string | null): string {
  return at === null ? 'immediately' : `at ${at}`;
}

/** The start options of every workflow that delivers messages. */
function options(
  { message_id, org_id, batch_id }: Pick<GroupRow, 'message_id' | 'org_id' | 'batch_id'>,
  channel: keyof typeof WORKFLOWS,
  taskQueue: string,
  priorityKey: number,
) {
  return {
    workflowId: message_id,
    taskQueue,
    priority: { priorityKey, ...(org_id !== null && { fairnessKey: org_id }) },
    typedSearchAttributes: new TypedSearchAttributes([
      { key: CHANNEL, value: channel },
      ...(org_id === null ? [] : [{ key: ORG_ID, value: org_id }]),
      ...(batch_id === null ? [] : [{ key: BATCH_ID, value: batch_id }]),
    ]),
  };
}

/** Returns true if a run has received as many signals as Temporal allows, 10,000 by default. Only the text identifies this error. */
function isSignalLimitExceeded(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (isGrpcServiceError(cause)) return cause.message.includes('limit for signal events');
  }
  return false;
}

/**
 * gRPC status codes that report a problem of the server or the network, not of the request: CANCELLED, DEADLINE_EXCEEDED,
 * RESOURCE_EXHAUSTED and UNAVAILABLE.
 */
const TEMPORARY_CODES = new Set([1, 4, 8, 14]);
/** gRPC status codes of a refused API key or certificate: PERMISSION_DENIED and UNAUTHENTICATED. */
const CREDENTIALS_CODES = new Set([7, 16]);

/** Returns the reason if the error concerns every request, not only this one. */
function unreachableReason(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof NamespaceNotFoundError) return 'Temporal does not have the namespace';
    if (!isGrpcServiceError(cause)) continue;
    if (CREDENTIALS_CODES.has(cause.code)) return 'Temporal refuses the API key or certificate';
    return TEMPORARY_CODES.has(cause.code) ? 'Temporal cannot be reached' : undefined;
  }
  return undefined;
}
