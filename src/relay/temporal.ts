import {
  type Client,
  isGrpcServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import type {
  Chore,
  DeliverChat,
  DeliverEmail,
  DeliverGroup,
  Schedule,
  WatchDomain,
  WebhookEndpoint,
} from '../../workflows/index.ts';
import { maskAddress, maskNumber } from '../lib/mask.ts';
import type { RetryPolicy } from '../domain/email/retry.ts';
import type {
  ChatRow,
  ChoreRow,
  DomainRow,
  EmailRow,
  GroupRow,
  OutboxRow,
  WebhookRow,
} from '../store/outbox/outbox.ts';
import type { Tracer } from '../telemetry/tracer.ts';
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

/**
 * Priorities of workflows and their activities, the lower the sooner: what somebody waits for never stands behind a
 * newsletter.
 */
const SINGLE = 2;
const WEBHOOKS = 3;
const BULK = 4;

/**
 * Turns outbox rows into requests to Temporal. Each may be repeated: a workflow that was started is not started again.
 * @param tracer there where requests are followed
 */
export function temporalCarrier(
  client: Client,
  retry: RetryPolicy,
  tracer?: Tracer,
): (row: OutboxRow) => Promise<void> {
  const { workflow } = client;

  /** `again`: it may have had a workflow of its own before; what guards against sending twice is the claim, not the id. */
  async function start(row: EmailRow, again: boolean): Promise<void> {
    if (!row.open) return;
    await unlessStarted(
      workflow.start<(input: DeliverEmail) => Promise<unknown>>('deliverEmail', {
        ...emailOptions(row, retry),
        workflowIdReusePolicy: again ? 'ALLOW_DUPLICATE' : 'REJECT_DUPLICATE',
      }),
    );
  }

  async function group(row: GroupRow): Promise<void> {
    await unlessStarted(
      workflow.start<(input: DeliverGroup) => Promise<unknown>>('deliverGroup', {
        ...groupOptions(row, retry),
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
      }),
    );
  }

  /** Also starts the workflow when there is none, as for an email that a group carried until now. */
  async function reschedule(row: EmailRow): Promise<void> {
    if (!row.open) return;
    await workflow.signalWithStart<(input: DeliverEmail) => Promise<unknown>, [Schedule]>('deliverEmail', {
      ...emailOptions(row, retry),
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      signal: 'reschedule',
      signalArgs: [{ version: row.version, dueAt: row.due_at }],
    });
  }

  async function cancel(row: EmailRow): Promise<void> {
    // A group finds out when it is due.
    if (row.workflow_id !== row.message_id) return;
    await unlessNotFound(workflow.getHandle(row.message_id).signal('cancel'));
  }

  async function wake(row: WebhookRow): Promise<void> {
    if (row.url === null) {
      await unlessNotFound(workflow.getHandle(row.message_id).signal('wake'));
      return;
    }
    await workflow.signalWithStart<(input: WebhookEndpoint) => Promise<unknown>>('webhookEndpoint', {
      ...webhookOptions(row, row.url),
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      signal: 'wake',
      signalArgs: [],
    });
  }

  /** Starts it where it has none; one that is not to be watched (any more) lets its workflow see that. */
  async function watch(row: DomainRow): Promise<void> {
    if (row.org_id === null || row.name === null) {
      await unlessNotFound(workflow.getHandle(row.message_id).signal('lookAgain'));
      return;
    }
    await workflow.signalWithStart<(input: WatchDomain) => Promise<unknown>>('watchDomain', {
      ...domainOptions(row.message_id, row.org_id, row.name),
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      signal: 'lookAgain',
      signalArgs: [],
    });
  }

  /** One that is being done may have looked before this was asked: then the schedule of chores makes up for it. */
  async function chore({ message_id: name }: ChoreRow): Promise<void> {
    await unlessStarted(
      workflow.start<(chores: readonly Chore[]) => Promise<unknown>>('upkeep', {
        workflowId: `upkeep-${name}`,
        taskQueue: WORKFLOW_QUEUE,
        args: [[name as Chore]],
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      }),
    );
  }

  async function chat(row: ChatRow): Promise<void> {
    if (!row.open) return;
    await unlessStarted(
      workflow.start<(input: DeliverChat) => Promise<unknown>>('deliverChat', {
        ...chatOptions(row, retry),
        workflowIdReusePolicy: row.again ? 'ALLOW_DUPLICATE' : 'REJECT_DUPLICATE',
      }),
    );
  }

  const actions = {
    start: (row: EmailRow) => start(row, false),
    leave: (row: EmailRow) => start(row, true),
    reschedule,
    cancel,
  };
  const act = (row: OutboxRow): Promise<void> => {
    if (row.action === 'group') return group(row);
    if (row.action === 'webhook') return wake(row);
    if (row.action === 'chat') return chat(row);
    if (row.action === 'domain') return watch(row);
    return row.action === 'chore' ? chore(row) : actions[row.action](row);
  };
  return async (row) => {
    const ask = () => follow(tracer, row, () => act(row));
    try {
      await client.connection.withDeadline(Date.now() + DEADLINE, ask);
    } catch (error) {
      throw isTemporary(error) ? new TemporalUnreachable('Temporal cannot be reached', { cause: error }) : error;
    }
  };
}

/** Goes on with the traces of the requests that messages came in. A group is a trace of its own that is linked with theirs. */
async function follow(tracer: Tracer | undefined, row: OutboxRow, act: () => Promise<void>): Promise<void> {
  if (!tracer) return act();
  const attributes = { 'sendwright.workflow.id': row.message_id, 'sendwright.outbox.action': row.action };
  if (row.action === 'group' && row.traceparents.length > 0) {
    const [first, ...others] = row.traceparents;
    const members = { 'sendwright.messages': row.members.length };
    // All of one request, as of a batch, stay in its trace.
    const led = others.length === 0 ? { parent: first } : { links: row.traceparents };
    return tracer.span('start group', { kind: 'producer', ...led, attributes: { ...attributes, ...members } }, act);
  }
  if (!('traceparent' in row) || row.traceparent === null) return act();
  return tracer.span(`${row.action} message`, { kind: 'producer', parent: row.traceparent, attributes }, act);
}

async function unlessStarted(starting: Promise<unknown>): Promise<void> {
  try {
    await starting;
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

/** Nobody waits for the signal then, so nobody needs to be told. */
async function unlessNotFound(signaling: Promise<unknown>): Promise<void> {
  try {
    await signaling;
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}

function emailOptions(row: EmailRow, retry: RetryPolicy) {
  const { version, due_at, message_id: id } = row;
  const more = row.more_to > 0 ? ` and ${row.more_to} more` : '';
  return {
    ...options(row, row.batch_id !== null),
    args: [{ id, version, dueAt: due_at, retry }] as [DeliverEmail],
    staticSummary: `Email to ${maskAddress(row.first_to)}${more}, ${due(due_at)}`,
  };
}

function groupOptions(row: GroupRow, retry: RetryPolicy) {
  const { members, due_at, message_id: id } = row;
  const batch = row.batch_id === null ? '' : ` of batch ${row.batch_id}`;
  return {
    ...options(row, row.bulk),
    args: [{ id, members, dueAt: due_at, retry }] as [DeliverGroup],
    staticSummary: `${members.length === 1 ? '1 email' : `${members.length} emails`}${batch}, ${due(due_at)}`,
  };
}

function chatOptions({ message_id: id, org_id, to, type }: ChatRow, retry: RetryPolicy) {
  return {
    workflowId: id,
    taskQueue: WORKFLOW_QUEUE,
    args: [{ id, retry }] as [DeliverChat],
    priority: { priorityKey: SINGLE, fairnessKey: org_id },
    typedSearchAttributes: new TypedSearchAttributes([
      { key: CHANNEL, value: 'chatapp' },
      { key: ORG_ID, value: org_id },
    ]),
    staticSummary: `Chat-app message (${type}) to ${maskNumber(to)}`,
  };
}

function domainOptions(id: string, orgId: string, name: string) {
  return {
    workflowId: id,
    taskQueue: WORKFLOW_QUEUE,
    args: [{ id }] as [WatchDomain],
    priority: { priorityKey: BULK, fairnessKey: orgId },
    typedSearchAttributes: new TypedSearchAttributes([
      { key: CHANNEL, value: 'domain' },
      { key: ORG_ID, value: orgId },
    ]),
    staticSummary: `Domain ${name}`,
  };
}

function webhookOptions({ message_id: id, org_id }: WebhookRow, url: string) {
  return {
    workflowId: id,
    taskQueue: WORKFLOW_QUEUE,
    args: [{ id }] as [WebhookEndpoint],
    priority: { priorityKey: WEBHOOKS, ...(org_id !== null && { fairnessKey: org_id }) },
    typedSearchAttributes: new TypedSearchAttributes([
      { key: CHANNEL, value: 'webhook' },
      ...(org_id === null ? [] : [{ key: ORG_ID, value: org_id }]),
    ]),
    // The rest of the URL may hold a secret.
    staticSummary: `Webhooks to ${new URL(url).host}`,
  };
}

function due(at: string | null): string {
  return at === null ? 'at once' : `at ${at}`;
}

/** What Temporal is told about every workflow that carries email. */
function options({ message_id, org_id, batch_id }: EmailRow | GroupRow, bulk: boolean) {
  return {
    workflowId: message_id,
    taskQueue: WORKFLOW_QUEUE,
    priority: { priorityKey: bulk ? BULK : SINGLE, ...(org_id !== null && { fairnessKey: org_id }) },
    typedSearchAttributes: new TypedSearchAttributes([
      { key: CHANNEL, value: 'email' },
      ...(org_id === null ? [] : [{ key: ORG_ID, value: org_id }]),
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
