import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { bundleWorkflowCode, Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { DomainActivities, Watched } from '../../activities/index.ts';
import { lookAgain, watchDomain } from '../../workflows/index.ts';
import { eventually } from '../support/eventually.ts';
import { timeSkipping } from '../support/temporal.ts';
import { quiet, silenceTemporal, workflowCode } from '../support/workflows.ts';
import { keepHistory } from './histories.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const CLOSED: Watched = { state: 'closed' };
const asleep = (inMs: number): Watched => ({ state: 'asleep', inMs });

describe('watchDomain', () => {
  let env: TestWorkflowEnvironment;
  let bundle: WorkflowBundleWithSourceMap;
  let count = 0;

  before(async () => {
    silenceTemporal();
    env = await timeSkipping();
    bundle = await bundleWorkflowCode({ ...workflowCode, logger: quiet });
  });
  after(() => env.teardown());

  type Handle = WorkflowHandle<typeof watchDomain>;
  type Answer = Watched | 'crash' | ((handle: Handle) => Promise<Watched>);

  /**
   * Starts the workflow of a domain whose checks come to these answers, does something, and waits for its end; time skips
   * only then. @returns when it looked, in milliseconds after the first time
   */
  async function carry(
    name: string,
    answers: Answer[],
    act: (handle: Handle, times: readonly number[]) => Promise<unknown> = async () => undefined,
    maxCachedWorkflows = 0,
  ): Promise<number[]> {
    const id = `dm_${++count}`;
    const times: number[] = [];
    const handle: Handle = env.client.workflow.getHandle(id);
    const activities: DomainActivities = {
      watchDomain: async ({ id: given }) => {
        assert.equal(given, id);
        times.push(await env.currentTimeMs());
        const answer = answers.shift() ?? CLOSED;
        if (answer === 'crash') throw new Error('the database is away');
        return typeof answer === 'function' ? answer(handle) : answer;
      },
    };
    const common = { connection: env.nativeConnection, namespace: 'default' };
    const workers = await Promise.all([
      // With nothing cached each task replays the history from its beginning, as a worker that was restarted does.
      Worker.create({ ...common, taskQueue: 'messages', workflowBundle: bundle, maxCachedWorkflows }),
      Worker.create({ ...common, taskQueue: 'domains', activities }),
    ]);
    const running = Promise.all(workers.map((each) => each.run()));
    try {
      await env.client.workflow.start(watchDomain, { workflowId: id, taskQueue: 'messages', args: [{ id }] });
      await act(handle, times);
      await handle.result();
      await keepHistory(`domains ${name}`, handle);
    } finally {
      for (const each of workers) each.shutdown();
      await running;
    }
    const [first = 0] = times;
    return times.map((at) => at - first);
  }

  const near = (at: number | undefined, expected: number) =>
    assert.ok(at !== undefined && at >= expected && at < expected + MINUTE, `${at} ms instead of ${expected}`);

  test('looks whenever it is due, and ends when the domain is not to be watched any more', async (t) => {
    const times = await carry(t.name, [asleep(MINUTE), asleep(2 * MINUTE), asleep(6 * HOUR), asleep(24 * HOUR)]);
    assert.equal(times.length, 5);
    near(times[1], MINUTE);
    near(times[2], 3 * MINUTE);
    near(times[3], 6 * HOUR + 3 * MINUTE);
    near(times[4], 30 * HOUR + 3 * MINUTE);
  });

  test('looks at once when it is told to', async (t) => {
    const times = await carry(t.name, [asleep(24 * HOUR)], async (handle, seen) => {
      await eventually('it has looked', () => seen.length === 1);
      await handle.signal(lookAgain);
    });
    assert.equal(times.length, 2);
    near(times[1], 0);
  });

  test('told while it looks, it looks once more', async (t) => {
    const late: Answer = async (handle) => {
      await handle.signal(lookAgain);
      return asleep(24 * HOUR);
    };
    const times = await carry(t.name, [late]);
    assert.equal(times.length, 2);
    near(times[1], 0);
  });

  test('told that the domain begins anew while it finds that it has failed, it goes on', async (t) => {
    const begun: Answer = async (handle) => {
      await handle.signal(lookAgain);
      return CLOSED;
    };
    assert.equal((await carry(t.name, [begun, asleep(MINUTE)])).length, 3);
  });

  test('while the database is away it tries again', async (t) => {
    assert.equal((await carry(t.name, ['crash', 'crash', 'crash', asleep(MINUTE)])).length, 5);
  });

  test('begins anew after 200 rounds, so that its history stays short', async () => {
    const days = Array.from({ length: 205 }, () => asleep(24 * HOUR));
    const times = await carry('begins anew', days, undefined, 10);
    assert.equal(times.length, 206);
    near(times[205], 205 * 24 * HOUR);
    const last = await env.client.workflow.getHandle(`dm_${count}`).fetchHistory();
    assert.ok((last.events?.length ?? 0) < 100, `${last.events?.length} events`);
  });
});
