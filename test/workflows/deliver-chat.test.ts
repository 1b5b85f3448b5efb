import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import { deliverChat } from '../../workflows/index.ts';
import { FakeChats } from './fake-chats.ts';
import { keepHistory } from './histories.ts';
import { useEnvironment } from './environment.ts';

const MINUTE = 60_000;
const RETRY = { maximumAttempts: 4, initialInterval: 1_000, maximumInterval: 4_000 };

describe('deliverChat', () => {
  const { env, now, startWorkers } = useEnvironment();
  const chats = new FakeChats(now);
  let count = 0;

  /** Carries one message to its end while a worker serves. The history is kept under the test's name. */
  async function carry(
    { name }: { name: string },
    act: (handle: WorkflowHandle<typeof deliverChat>) => Promise<unknown> = async () => undefined,
  ) {
    const id = `wa_${++count}`;
    const stop = await startWorkers({ chat: chats.activities });
    try {
      const handle = await env().client.workflow.start(deliverChat, {
        workflowId: id,
        taskQueue: 'messages',
        args: [{ id, retry: RETRY }],
      });
      await act(handle);
      const result = await handle.result();
      await keepHistory(`chat ${name}`, handle);
      return { id, result, handle, row: chats.row(id) };
    } finally {
      await stop();
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
    chats.answers.push('refuse');
    const { result, row } = await carry(t);
    assert.deepEqual([result, row.attempts], ['failed', 1]);
  });

  test('a provider that is busy three times gets it at the fourth attempt', async (t) => {
    chats.answers.push('busy', 'busy', 'busy');
    const { result, row } = await carry(t);
    assert.deepEqual([result, row.attempts], ['sent', 4]);
  });

  test('attempts are used up: the message fails', async (t) => {
    chats.answers.push('busy', 'busy', 'busy', 'busy');
    const { result, row } = await carry(t);
    assert.deepEqual([result, row.attempts], ['failed', RETRY.maximumAttempts]);
  });

  test('the time that a provider names is waited for', async (t) => {
    chats.answers.push({ busyFor: 10 * MINUTE });
    const began = await now();
    const { result, row } = await carry(t);
    assert.equal(result, 'sent');
    const waited = (row.sentAt ?? 0) - began;
    assert.ok(waited >= 10 * MINUTE && waited < 12 * MINUTE, `waited ${waited} ms`);
  });

  test('failures that never reached a provider do not use up its attempts', async (t) => {
    chats.answers.push('crash', 'crash', 'crash', 'crash', 'busy', 'crash', 'crash', 'crash');
    const { result, row } = await carry(t);
    assert.deepEqual([result, row.attempts], ['sent', 2]);
  });

  test('a report that comes between two attempts ends it', async (t) => {
    chats.answers.push('busy');
    let asked = 0;
    chats.before = async (id) => {
      if (++asked === 2) chats.row(id).status = 'delivered';
    };
    const { result, row } = await carry(t);
    chats.before = async () => undefined;
    assert.deepEqual([result, row.attempts], ['delivered', 1]);
  });

  test('canceled with Temporal’s own tools, it is sent all the same: nobody can call it back', async (t) => {
    chats.answers.push('busy');
    let release: () => void = () => undefined;
    const canceled = new Promise<void>((resolve) => (release = resolve));
    chats.before = () => canceled;
    const { result, row } = await carry(t, async (handle) => {
      await handle.cancel();
      release();
    });
    chats.before = async () => undefined;
    assert.deepEqual([result, row.attempts], ['sent', 2]);
  });
});
