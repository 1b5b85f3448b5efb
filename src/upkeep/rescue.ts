import type { Logger } from 'pino';
import { groupBy } from '../lib/group.ts';
import { mapConcurrently } from '../lib/map-concurrently.ts';
import { type Pool, transaction } from '../store/postgres/pool.ts';
import { requeueMessages } from '../store/messages/stuck.ts';
import {
  findAlmostDue,
  findAlmostDueWorkflows,
  findOverdue,
  type LookUp,
  requeueEmails,
  scheduleNextCheck,
} from '../store/emails/stuck.ts';
import { messagesRescued } from '../telemetry/topics.ts';
import { toStep, type UpkeepStep } from './task.ts';
import { type FailingWorkflow, MAX_CONCURRENT_REQUESTS, type Workflows, type WorkflowState } from './workflow-state.ts';

export interface RescueDeps {
  readonly pool: Pool;
  readonly workflows: Workflows;
  readonly lookUp: LookUp;
  readonly log: Logger;
}

const OVERDUE_PER_STEP = 200;
/** Workflows of one step whose emails are almost due; a few queries find that most of them are running. */
const ALMOST_DUE_PER_STEP = 10_000;
/** Failing workflows that one run replaces: after a bad deployment there may be more than Temporal should restart together. */
const FAILING_PER_RUN = 100;

/** Maintenance tasks that start a new workflow for messages whose workflow was lost, closed early or makes no progress. */
export function makeRescueUpkeep(deps: RescueDeps) {
  return {
    /**
     * Starts a new workflow for emails, and for copies of marketing emails, that have been due for more than ten minutes and have no
     * running workflow.
     */
    async putBackOverdue(): Promise<UpkeepStep> {
      const emails = await findOverdue(deps.pool, OVERDUE_PER_STEP);
      const ofWorkflows = groupBy(emails, (email) => email.workflow_id);
      await mapConcurrently(ofWorkflows, MAX_CONCURRENT_REQUESTS, async ([workflowId, members]) => {
        const ids = members.map(({ id }) => id);
        const state = await deps.workflows.describe(workflowId);
        if (state !== 'running') await putBack(deps, workflowId, ids, state);
        await scheduleNextCheck(deps.pool, ids);
      });
      return toStep(emails.length, OVERDUE_PER_STEP);
    },

    /**
     * Starts a new workflow for scheduled emails without one before they are due, so that they leave on time, and for late ones whose
     * workflow waits for another time. Temporal is asked about many workflows at a time; only those that it does not list as running,
     * and those of late emails, are described one by one.
     */
    async putBackScheduled(from: string | null): Promise<UpkeepStep> {
      const { pool, workflows } = deps;
      const found = await findAlmostDueWorkflows(pool, from ?? '', ALMOST_DUE_PER_STEP);
      const running = await workflows.findRunning(
        found.flatMap(({ workflow_id, isLate }) => (isLate ? [] : workflow_id)),
      );
      let done = 0;
      const doubtful = found.filter(({ workflow_id }) => !running.has(workflow_id));
      await mapConcurrently(doubtful, MAX_CONCURRENT_REQUESTS, async ({ workflow_id: id, isLate }) => {
        const state = await workflows.describe(id);
        // An idle workflow is expected until its email is due.
        if (state === 'running' || (state === 'idle' && !isLate)) return;
        const count = await putBack(deps, id, await findAlmostDue(pool, id, state === 'idle'), state);
        done += count;
      });
      return { done, next: found.length === ALMOST_DUE_PER_STEP ? (found.at(-1)?.workflow_id ?? null) : null };
    },

    /** Replaces workflows that Temporal marks because their tasks keep failing, whether their messages are due or not. */
    async replaceFailing(): Promise<UpkeepStep> {
      let done = 0;
      for (const workflow of await deps.workflows.findFailing(FAILING_PER_RUN)) {
        // Visibility lags: the workflow may have recovered.
        if ((await deps.workflows.describe(workflow.id)) !== 'failing') continue;
        await replace(deps, workflow);
        done++;
      }
      return { done, next: null };
    },
  };
}

async function replace(deps: RescueDeps, { id, type }: FailingWorkflow): Promise<void> {
  // Logged before it is terminated, because its history shows how it failed.
  deps.log.error({ workflow: id, type }, 'replacing a workflow whose task keeps failing');
  if (type === 'deliverEmail') {
    await putBack(deps, id, [id], 'failing');
    return;
  }
  await deps.workflows.terminate(id);
  if (type === 'deliverChat' || type === 'deliverSms') {
    const open = await requeueMessages(deps.pool, [id], false);
    messagesRescued.publish({ kind: type === 'deliverSms' ? 'sms' : 'chatapp', state: 'failing', count: open.length });
  }
  // Members of a group are found by the other two tasks when they are almost due, or overdue.
}

/** @returns how many emails were open */
async function putBack(
  { pool, workflows, log, lookUp }: RescueDeps,
  workflowId: string,
  ids: readonly string[],
  state: Exclude<WorkflowState, 'running'>,
): Promise<number> {
  // The claim, not the workflow, prevents a second send: the old workflow finds that another one delivers the email.
  if (state === 'idle' || state === 'failing') await workflows.terminate(workflowId);
  const open = await transaction(pool, (client) => requeueEmails(client, workflowId, ids, state, lookUp));
  if (open.length === 0) return 0;
  messagesRescued.publish({ kind: 'email', state, count: open.length });
  log.warn({ workflow: workflowId, state, emails: open.length, first: open[0] }, 'started a new workflow for emails');
  return open.length;
}
