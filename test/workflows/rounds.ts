import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { Workflow, WorkflowHandle } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { timeSkipping } from '../support/time-skipping.ts';
import { silenceTemporal, workflowBundle } from '../support/workflows.ts';
import { keepHistory } from './histories.ts';

/** What a round comes to: what its activity returns, at once or after it has acted on its workflow, or a failure. */
export type Answer<R> = R | 'crash' | ((handle: WorkflowHandle) => Promise<R>);

/** A workflow that lets one activity look what is due, round after round. */
export interface Rounds<R> {
  readonly workflow: Workflow;
  readonly activity: string;
  /** Of the activity; the name of the histories that are kept, too. */
  readonly taskQueue: string;
  /** How its ids begin. */
  readonly prefix: string;
  /** What the activity returns when it has no other answer any more. */
  readonly closed: R;
}

const MINUTE = 60_000;

/** What runs such a workflow against answers. */
export interface RoundsBench<R> {
  /**
   * Starts it, does something, and waits for its end; time skips only then.
   * @returns when its activity ran, in milliseconds after the first time
   */
  readonly carry: (
    name: string,
    answers: Answer<R>[],
    act?: (handle: WorkflowHandle, times: readonly number[]) => Promise<unknown>,
    maxCachedWorkflows?: number,
  ) => Promise<number[]>;
  /** How many events the history of the last workflow has, since it last began anew. */
  readonly lastLength: () => Promise<number>;
}

/** For a suite, with a server that skips time. */
export function makeRounds<R>({ workflow, activity, taskQueue, prefix, closed }: Rounds<R>): RoundsBench<R> {
  let env: TestWorkflowEnvironment;
  let bundle: { readonly codePath: string };
  let count = 0;

  before(async () => {
    silenceTemporal();
    env = await timeSkipping();
    bundle = await workflowBundle();
  });
  after(() => env.teardown());

  async function carry(
    name: string,
    answers: Answer<R>[],
    act: (handle: WorkflowHandle, times: readonly number[]) => Promise<unknown> = async () => undefined,
    maxCachedWorkflows = 0,
  ): Promise<number[]> {
    const id = `${prefix}_${++count}`;
    const times: number[] = [];
    const handle = env.client.workflow.getHandle(id);
    const activities = {
      [activity]: async (given: { readonly id: string }) => {
        assert.deepEqual(given, { id });
        times.push(await env.currentTimeMs());
        const answer = answers.shift() ?? closed;
        if (answer === 'crash') throw new Error('the database is away');
        return typeof answer === 'function' ? (answer as (handle: WorkflowHandle) => Promise<R>)(handle) : answer;
      },
    };
    const common = { connection: env.nativeConnection, namespace: 'default' };
    const workers = await Promise.all([
      // With nothing cached each task replays the history from its beginning, as a worker that was restarted does.
      Worker.create({ ...common, taskQueue: 'messages', workflowBundle: bundle, maxCachedWorkflows }),
      Worker.create({ ...common, taskQueue, activities }),
    ]);
    const running = Promise.all(workers.map((each) => each.run()));
    try {
      await env.client.workflow.start(workflow, { workflowId: id, taskQueue: 'messages', args: [{ id }] });
      await act(handle, times);
      await handle.result();
      await keepHistory(`${taskQueue} ${name}`, handle);
    } finally {
      for (const each of workers) each.shutdown();
      await running;
    }
    const [first = 0] = times;
    return times.map((at) => at - first);
  }

  async function lastLength(): Promise<number> {
    const { events } = await env.client.workflow.getHandle(`${prefix}_${count}`).fetchHistory();
    return events?.length ?? 0;
  }

  return { carry, lastLength };
}

/** That a time is not before another one, and at most a minute after it. Milliseconds. */
export function near(at: number | undefined, expected: number): void {
  assert.ok(at !== undefined && at >= expected && at < expected + MINUTE, `${at} ms instead of ${expected}`);
}
