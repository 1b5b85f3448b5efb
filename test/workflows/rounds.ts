import assert from 'node:assert/strict';
import type { Workflow, WorkflowHandle } from '@temporalio/client';
import { keepHistory } from './histories.ts';
import { useEnvironment } from './environment.ts';

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
  const { env, now, startWorkers } = useEnvironment();
  let count = 0;

  async function carry(
    name: string,
    answers: Answer<R>[],
    act: (handle: WorkflowHandle, times: readonly number[]) => Promise<unknown> = async () => undefined,
    maxCachedWorkflows = 0,
  ): Promise<number[]> {
    const id = `${prefix}_${++count}`;
    const times: number[] = [];
    const handle = env().client.workflow.getHandle(id);
    const activities = {
      [activity]: async (given: { readonly id: string }) => {
        assert.deepEqual(given, { id });
        times.push(await now());
        const answer = answers.shift() ?? closed;
        if (answer === 'crash') throw new Error('the database is away');
        return typeof answer === 'function' ? (answer as (handle: WorkflowHandle) => Promise<R>)(handle) : answer;
      },
    };
    const stop = await startWorkers({ [taskQueue]: activities }, maxCachedWorkflows);
    try {
      await env().client.workflow.start(workflow, { workflowId: id, taskQueue: 'messages', args: [{ id }] });
      await act(handle, times);
      await handle.result();
      await keepHistory(`${taskQueue} ${name}`, handle);
    } finally {
      await stop();
    }
    const [first = 0] = times;
    return times.map((at) => at - first);
  }

  async function lastLength(): Promise<number> {
    const { events } = await env().client.workflow.getHandle(`${prefix}_${count}`).fetchHistory();
    return events?.length ?? 0;
  }

  return { carry, lastLength };
}

/** That a time is not before another one, and at most a minute after it. Milliseconds. */
export function near(at: number | undefined, expected: number): void {
  assert.ok(at !== undefined && at >= expected && at < expected + MINUTE, `${at} ms instead of ${expected}`);
}
