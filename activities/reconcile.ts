import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { groupBy } from '../src/domain/group.ts';
import { projectFeedback } from '../src/projection/feedback.ts';
import type { EmailProvider } from '../src/providers/email-provider.ts';
import { lockStatuses } from '../src/store/attempts.ts';
import { leaveGroup } from '../src/store/outbox.ts';
import { type Pool, transaction } from '../src/store/pool.ts';
import { findOverdue, findUnreported, noteLooks } from '../src/store/stuck-emails.ts';
import type { UpkeepStep } from './chore.ts';

/** What it takes to find out about stuck emails. */
export interface ReconcileDeps {
  readonly pool: Pool;
  /** Asks Postmark what it has to tell about a message; undefined where it is not set up. */
  readonly askPostmark: EmailProvider['reports'] | undefined;
  /** Milliseconds between two questions, so that nobody else's calls to Postmark suffer from ours; 100 by default. */
  readonly pace?: number;
  /** What Temporal knows of a workflow by its id: of its latest run. */
  readonly describeWorkflow: (id: string) => Promise<'running' | 'closed' | 'missing'>;
  readonly log: Logger;
}

/** Questions of one step. */
const QUESTIONS = 100;
const PACE = 100;
/** Emails of one step whose workflows are looked up. */
const AT_ONCE = 200;

/** Chores that set right what was lost on the way: reports of the provider, and workflows. */
export function makeReconcileActivities(deps: ReconcileDeps) {
  return {
    /** Asks Postmark about emails of which it should have reported more by now, and notes what it says. */
    async reconcileSent(): Promise<UpkeepStep> {
      const { askPostmark, pace = PACE } = deps;
      if (!askPostmark) return { done: 0, next: null };
      const emails = await findUnreported(deps.pool, QUESTIONS);
      const asked: string[] = [];
      let reports = 0;
      try {
        for (const { id, message_ids } of emails) {
          // Also one that cannot be asked about: it shall not stand in the way of the others the next time.
          asked.push(id);
          for (const messageId of message_ids) {
            const [found] = await Promise.all([askPostmark(id, messageId), sleep(pace)]);
            reports += found.length;
            await projectFeedback(deps.pool, found);
          }
        }
      } finally {
        await noteLooks(deps.pool, asked);
        if (emails.length > 0) {
          const line = { emails: emails.length, asked: asked.length, reports };
          deps.log.info(line, 'asked Postmark about emails that it had not reported');
        }
      }
      return { done: asked.length, next: emails.length === QUESTIONS ? '' : null };
    },

    /** Gives emails that are overdue a new workflow when theirs is gone: somebody terminated it, or Temporal lost it. */
    async putBackOverdue(): Promise<UpkeepStep> {
      const emails = await findOverdue(deps.pool, AT_ONCE);
      for (const [workflowId, carried] of groupBy(emails, (email) => email.workflow_id)) {
        const ids = carried.map(({ id }) => id);
        const state = await deps.describeWorkflow(workflowId);
        if (state !== 'running') await putBack(deps, workflowId, ids, state);
        await noteLooks(deps.pool, ids);
      }
      return { done: emails.length, next: emails.length === AT_ONCE ? '' : null };
    },
  };
}

async function putBack(
  { pool, log }: ReconcileDeps,
  workflowId: string,
  ids: readonly string[],
  state: string,
): Promise<void> {
  const open = await transaction(pool, async (client) => {
    // A workflow that has closed meanwhile as it should has ended its emails before.
    const statuses = await lockStatuses(client, ids, workflowId);
    const left = ids.filter((id) => ['queued', 'scheduled'].includes(statuses.get(id) ?? ''));
    await leaveGroup(
      client,
      workflowId,
      left.map((id) => ({ id, wait: 0 })),
    );
    return left;
  });
  if (open.length > 0) log.warn({ workflow: workflowId, state, emails: open }, 'overdue emails get a new workflow');
}
