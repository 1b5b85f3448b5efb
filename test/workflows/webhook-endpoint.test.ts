import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { bundleWorkflowCode, Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { Drained, WebhookActivities } from '../../activities/index.ts';
import { wake, webhookEndpoint } from '../../workflows/index.ts';
import { eventually } from '../support/eventually.ts';
import { timeSkipping } from '../support/temporal.ts';
import { quiet, silenceTemporal, workflowCode } from '../support/workflows.ts';
import { keepHistory } from './histories.ts';

const HOUR = 3_600_000;
const MINUTE = 60_000;
const AGAIN: Drained = { state: 'again' };
const CLOSED: Drained = { state: 'closed' };
const asleep = (inMs: number | null): Drained => ({ state: 'asleep', inMs });

describe('webhookEndpoint', () => {
  let env: TestWorkflowEnvironment;
  let bundle: WorkflowBundleWithSourceMap;
  let count = 0;

  before(async () => {
    silenceTemporal();
    env = await timeSkipping();
    bundle = await bundleWorkflowCode({ ...workflowCode, logger: quiet });
  });
  after(() => env.teardown());

  type Handle = WorkflowHandle<typeof webhookEndpoint>;
  type Answer = Drained | 'crash' | ((handle: Handle) => Promise<Drained>);

  /**
   * Starts the workflow of an endpoint whose work comes to these answers, does something, and waits for its end; time
   * skips only then. @returns when it worked, in milliseconds after the first time
   */
  async function carry(
    name: string,
    answers: Answer[],
    act: (handle: Handle, times: readonly number[]) => Promise<unknown> = async () => undefined,
    maxCachedWorkflows = 0,
  ): Promise<number[]> {
    const id = `wh_${++count}`;
    const times: number[] = [];
    const handle: Handle = env.client.workflow.getHandle(id);
    const activities: WebhookActivities = {
      drainEndpoint: async ({ id: given }) => {
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
      Worker.create({ ...common, taskQueue: 'webhooks', activities }),
    ]);
    const running = Promise.all(workers.map((each) => each.run()));
    try {
      await env.client.workflow.start(webhookEndpoint, { workflowId: id, taskQueue: 'messages', args: [{ id }] });
      await act(handle, times);
      await handle.result();
      await keepHistory(`webhooks ${name}`, handle);
    } finally {
      for (const each of workers) each.shutdown();
      await running;
    }
    const [first = 0] = times;
    return times.map((at) => at - first);
  }

  const near = (at: number | undefined, expected: number) =>
    assert.ok(at !== undefined && at >= expected && at < expected + MINUTE, `${at} ms instead of ${expected}`);

  test('works until nothing is due, then when the next is due, and ends with its endpoint', async (t) => {
    const times = await carry(t.name, [AGAIN, AGAIN, asleep(5_000), asleep(20 * HOUR)]);
    assert.equal(times.length, 5);
    near(times[2], 0);
    near(times[3], 5_000);
    near(times[4], 20 * HOUR + 5_000);
  });

  test('a wake ends its sleep, however long that was meant to be', async (t) => {
    for (const inMs of [null, 24 * HOUR]) {
      const name = inMs === null ? t.name : `${t.name} and something is due later`;
      const times = await carry(name, [asleep(inMs)], async (handle, seen) => {
        await eventually('it has worked', () => seen.length === 1);
        await handle.signal(wake);
      });
      assert.equal(times.length, 2);
      near(times[1], 0);
    }
  });

  test('a wake that comes while it works is not slept over', async (t) => {
    const late: Answer = async (handle) => {
      await handle.signal(wake);
      return asleep(null);
    };
    const times = await carry(t.name, [late]);
    assert.equal(times.length, 2);
  });

  test('a wake that comes while it finds its endpoint disabled makes it look once more', async (t) => {
    const enabled: Answer = async (handle) => {
      await handle.signal(wake);
      return CLOSED;
    };
    assert.equal((await carry(t.name, [enabled, asleep(1_000)])).length, 3);
  });

  test('while the database is away it tries again', async (t) => {
    const times = await carry(t.name, ['crash', 'crash', 'crash', asleep(1_000)]);
    assert.equal(times.length, 5);
  });

  test('begins anew after 200 rounds, so that its history stays short', async () => {
    const times = await carry(
      'begins anew',
      Array.from({ length: 205 }, () => AGAIN),
      undefined,
      10,
    );
    assert.equal(times.length, 206);
    const last = await env.client.workflow.getHandle(`wh_${count}`).fetchHistory();
    assert.ok((last.events?.length ?? 0) < 100, `${last.events?.length} events`);
  });
});
