import { type Client, WorkflowNotFoundError, type WorkflowExecutionDescription } from '@temporalio/client';
import { defineSearchAttributeKey } from '@temporalio/common';
import { chunksOf } from '../../lib/group.ts';
import { mapConcurrently } from '../../lib/map-concurrently.ts';
import { ignoreNotFound } from '../../relay/temporal.ts';
import type { FailingWorkflow, Workflows, WorkflowState } from '../../upkeep/workflow-state.ts';

/** Temporal's search attribute of workflows whose tasks keep failing or timing out. */
const PROBLEMS = defineSearchAttributeKey('TemporalReportedProblems', 'KEYWORD_LIST');
/** Its value for failures. Tasks time out while workers are overloaded, and a new workflow would only add to their load. */
const TASK_FAILED = 'category=WorkflowTaskFailed';
/** A workflow with this many attempts of a task is failing, also if the server does not set that attribute. */
const FAILING_ATTEMPTS = 5;
/** PendingActivityState of Temporal's API. */
const ACTIVITY_STARTED = 2;
/** Workflow types that only earlier versions start. */
const EARLIER_TYPES = ['webhookEndpoint', 'watchDomain'];
/** All of our workflow types. Other applications may use the same namespace, so queries that give no ids name them. */
export const WORKFLOW_TYPES = ['deliverEmail', 'deliverChat', 'deliverSms', 'deliverGroup', 'upkeep', ...EARLIER_TYPES];
const TERMINATION_REASON = 'replaced by upkeep: it made no progress';
const IDS_PER_QUERY = 200;
const MAX_CONCURRENT_QUERIES = 4;

/** @param client called for each request, since activities are created before Temporal is connected */
export function openWorkflows(client: () => Client): Workflows {
  return {
    describe: (id) => describeWorkflow(client(), id),
    terminate: (id) => ignoreNotFound(client().workflow.getHandle(id).terminate(TERMINATION_REASON)),
    findRunning: (ids) => findRunning(client(), ids),
    findFailing: (limit) => findFailing(client(), limit),
    endEarlier: (limit) => endEarlier(client(), limit),
  };
}

/** Returns the state of the latest run of a workflow; `missing` if its history was deleted. */
export async function describeWorkflow({ workflow }: Client, id: string): Promise<WorkflowState> {
  try {
    return stateOf(await workflow.getHandle(id).describe());
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'missing';
    throw error;
  }
}

function stateOf({ status, raw, typedSearchAttributes }: WorkflowExecutionDescription): WorkflowState {
  if (status.name === 'PAUSED') return 'running';
  if (status.name !== 'RUNNING') return 'closed';
  const activities = raw.pendingActivities ?? [];
  // Terminating it now would leave an ambiguous call to a provider.
  if (activities.some(({ state }) => Number(state) === ACTIVITY_STARTED)) return 'running';
  const task = raw.pendingWorkflowTask;
  const isMarked = typedSearchAttributes.get(PROBLEMS)?.includes(TASK_FAILED) === true;
  if (isMarked || (task?.attempt ?? 0) >= FAILING_ATTEMPTS) return 'failing';
  return task || activities.length > 0 ? 'running' : 'idle';
}

/**
 * Queries visibility, which needs one request for many workflows and may lag by a few seconds. Counts first, since usually
 * all of them are running: for 200 ids, counting took 3 to 15 ms, listing 140 to 240 ms and describing 1,400 ms.
 */
async function findRunning({ workflow }: Client, ids: readonly string[]): Promise<Set<string>> {
  const running = new Set<string>();
  await mapConcurrently(chunksOf(ids, IDS_PER_QUERY), MAX_CONCURRENT_QUERIES, async (some) => {
    const query = `ExecutionStatus = 'Running' AND WorkflowId IN (${quoteAll(some)})`;
    if ((await workflow.count(query)).count === some.length) {
      for (const id of some) running.add(id);
      return;
    }
    for await (const { workflowId } of workflow.list({ query, pageSize: IDS_PER_QUERY })) running.add(workflowId);
  });
  return running;
}

async function findFailing({ workflow }: Client, limit: number): Promise<FailingWorkflow[]> {
  const failing: FailingWorkflow[] = [];
  const query = `${makeRunningQuery(WORKFLOW_TYPES)} AND ${PROBLEMS.name} = '${TASK_FAILED}'`;
  for await (const { workflowId, type } of workflow.list({ query, pageSize: limit })) {
    failing.push({ id: workflowId, type });
    if (failing.length === limit) break;
  }
  return failing;
}

async function endEarlier({ workflow }: Client, limit: number): Promise<number> {
  let count = 0;
  const query = makeRunningQuery(EARLIER_TYPES);
  for await (const { workflowId, type } of workflow.list({ query, pageSize: limit })) {
    await ignoreNotFound(workflow.getHandle(workflowId).signal(type === 'watchDomain' ? 'lookAgain' : 'wake'));
    if (++count === limit) break;
  }
  return count;
}

function makeRunningQuery(types: readonly string[]): string {
  return `ExecutionStatus = 'Running' AND WorkflowType IN (${quoteAll(types)})`;
}

function quoteAll(values: readonly string[]): string {
  return values.map((value) => `'${value}'`).join(', ');
}
