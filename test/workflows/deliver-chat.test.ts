import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { deliverChat } from '../../workflows/index.ts';
import { timeSkipping } from '../support/time-skipping.ts';
import { silenceTemporal, workflowBundle } from '../support/workflows.ts';
import { ChatOffice } from './chat-office.ts';
import { keepHistory } from './histories.ts';

const MINUTE = 60_000;
const RETRY = { maximumAttempts: 4, initialInterval: 1_000, maximumInterval: 4_000 };

describe('deliverChat', () => {
  let env: TestWorkflowEnvironment;
  let bundle: { readonly codePath: string };
  let office: ChatOffice;
  let count = 0;

  before(async () => {
    silenceTemporal();
    env = await timeSkipping();
    bundle = await workflowBundle();
    office = new ChatOffice(() => env.currentTimeMs());
  });
  after(() => env.teardown());

  /** Carries one message to its end while a worker serves. The history is kept under the test's name. */
  async function carry(
    { name }: { name: string },
    act: (handle: WorkflowHandle<typeof deliverChat>) => Promise<unknown> = async () => undefined,
  ) {
    const id = `wa_${++count}`;
    const common = { connection: env.nativeConnection, namespace: 'default' };
    const workers = await Promise.all([
      // Nothing cached: each task replays the history from its beginning, as a worker that was restarted does.
      Worker.create({ ...common, taskQueue: 'messages', workflowBundle: bundle, maxCachedWorkflows: 0 }),
      Worker.create({ ...common, taskQueue: 'chat', activities: office.activities }),
    ]);
    const running = Promise.all(workers.map((each) => each.run()));
    try {
      const handle = await env.client.workflow.start(deliverChat, {
        workflowId: id,
        taskQueue: 'messages',
        args: [{ id, retry: RETRY }],
      });
      await act(handle);
      const result = await handle.result();
      await keepHistory(`chat ${name}`, handle);
      return { id, result, handle, row: office.row(id) };
    } finally {
      for (const each of workers) each.shutdown();
      await running;
    }
  }

  test('a message is handed over at once', async (t) => {
    const { result, row, handle } = await carry(t);
    assert.deepEqual([result, row.attempts], ['sent', 1]);
    const { typedSearchAttributes } = await handle.describe();
    const found = typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]);
    assert.deepEqual(found, [['Provider', 'twilio']]);
  });

  test('a refusal for good ends it at once', async (t) => {
    office.answers.push('refuse');
    const { result, row } = await carry(t);
    assert.deepEqual([result, row.attempts], ['failed', 1]);
  });

  test('a provider that is busy three times gets it at the fourth attempt', async (t) => {
    office.answers.push('busy', 'busy', 'busy');
    const { result, row } = await carry(t);
    assert.deepEqual([result, row.attempts], ['sent', 4]);
  });

  test('attempts are used up: the message fails', async (t) => {
    office.answers.push('busy', 'busy', 'busy', 'busy');
    const { result, row } = await carry(t);
    assert.deepEqual([result, row.attempts], ['failed', RETRY.maximumAttempts]);
  });

  test('the time that a provider names is waited for', async (t) => {
    office.answers.push({ busyFor: 10 * MINUTE });
    const began = await env.currentTimeMs();
    const { result, row } = await carry(t);
    assert.equal(result, 'sent');
    const waited = (row.sentAt ?? 0) - began;
    assert.ok(waited >= 10 * MINUTE && waited < 12 * MINUTE, `waited ${waited} ms`);
  });

  test('failures that never reached a provider do not use up its attempts', async (t) => {
    office.answers.push('crash', 'crash', 'crash', 'crash', 'busy', 'crash', 'crash', 'crash');
    const { result, row } = await carry(t);
    assert.deepEqual([result, row.attempts], ['sent', 2]);
  });

  test('a report that comes between two attempts ends it', async (t) => {
    office.answers.push('busy');
    let asked = 0;
    office.before = async (id) => {
      if (++asked === 2) office.row(id).status = 'delivered';
    };
    const { result, row } = await carry(t);
    office.before = async () => undefined;
    assert.deepEqual([result, row.attempts], ['delivered', 1]);
  });

  test('canceled with Temporal’s own tools, it is sent all the same: nobody can call it back', async (t) => {
    office.answers.push('busy');
    let release: () => void = () => undefined;
    const canceled = new Promise<void>((resolve) => (release = resolve));
    office.before = () => canceled;
    const { result, row } = await carry(t, async (handle) => {
      await handle.cancel();
      release();
    });
    office.before = async () => undefined;
    assert.deepEqual([result, row.attempts], ['sent', 2]);
  });
});
