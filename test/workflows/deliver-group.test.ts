import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import { deliverEmail, deliverGroup, type GroupQueue, reschedule } from '../../workflows/index.ts';
import { FakeGroups } from './fake-groups.ts';
import { keepHistory } from './histories.ts';
import { FakeMessages } from './fake-messages.ts';
import { useEnvironment } from './environment.ts';

const DAY = 86_400_000;
const MINUTE = 60_000;
const RETRY = { maximumAttempts: 4, initialInterval: 1_000, maximumInterval: 4_000 };

describe('deliverGroup', () => {
  const { env, now, startWorkers } = useEnvironment();
  const emails = new FakeMessages(now);
  const groups = new FakeGroups(emails);
  const worker = (queue: GroupQueue = 'email-groups') =>
    startWorkers({ email: emails.activities, [queue]: groups.activities });
  let count = 0;

  type Handle = WorkflowHandle<typeof deliverGroup>;
  interface Started {
    readonly ids: readonly [string, string, string, string];
    readonly dueAt: number;
    readonly handle: Handle;
    /** Replaces the workers. */
    readonly restart: () => Promise<void>;
  }

  /** Starts a group of four, does something, and waits for its end; time skips only then. Its history is kept. */
  async function deliver(
    { name }: { name: string },
    dueIn: number | null,
    act: (started: Started) => Promise<void> = async () => undefined,
    taskQueue?: GroupQueue,
  ): Promise<{ counts: Record<string, number>; ids: Started['ids']; dueAt: number }> {
    const id = `grp_${++count}`;
    const ids = [1, 2, 3, 4].map((i) => `em_${count}_${i}`) as unknown as Started['ids'];
    const dueAt = (await now()) + (dueIn ?? 0);
    groups.accept(id, ids, dueIn === null ? null : dueAt);
    let stop = await worker(taskQueue);
    const restart = async () => {
      await stop();
      stop = await worker(taskQueue);
    };
    try {
      const handle = await env().client.workflow.start(deliverGroup, {
        workflowId: id,
        taskQueue: 'messages',
        args: [
          {
            id,
            members: ids.map((member) => ({ id: member, version: 0 })),
            dueAt: dueIn === null ? null : new Date(dueAt).toISOString(),
            retry: RETRY,
            ...(taskQueue && { taskQueue }),
            ...(taskQueue?.startsWith('chat-') && { channel: 'sms' }),
          },
        ],
      });
      await act({ ids, dueAt, handle, restart });
      const counts = await handle.result();
      await keepHistory(`group ${name}`, handle);
      return { counts, ids, dueAt };
    } finally {
      await stop();
    }
  }

  const lateness = (id: string, dueAt: number) => (emails.row(id).sentAt ?? Number.NaN) - dueAt;

  test('emails that are due at once are sent at once, in one call', async (t) => {
    const calls = groups.calls;
    const { counts, ids, dueAt } = await deliver(t, null);
    assert.deepEqual(counts, { sent: 4 });
    assert.equal(groups.calls, calls + 1);
    for (const id of ids) assert.ok(lateness(id, dueAt) < MINUTE);
  });

  test('single emails are sent by the workers of their own task queue', async (t) => {
    const { counts } = await deliver(t, null, undefined, 'email-bursts');
    assert.deepEqual(counts, { sent: 4 });
  });

  test('a group of SMS is sent by the workers of its task queue, which learn its channel', async (t) => {
    groups.answers.push('busy');
    const { counts } = await deliver(t, null, undefined, 'chat-bursts');
    assert.deepEqual(counts, { sent: 4 });
    assert.deepEqual(groups.channels.slice(-2), ['sms', 'sms']);
  });

  test('emails 29 days ahead share one timer and are sent then, not before', async (t) => {
    const { counts, ids, dueAt } = await deliver(t, 29 * DAY, async ({ restart }) => restart());
    assert.deepEqual(counts, { sent: 4 });
    for (const id of ids) assert.ok(lateness(id, dueAt) >= 0 && lateness(id, dueAt) < MINUTE);
  });

  test('one that is rescheduled goes its own way, one that is canceled stays, the others go on time', async (t) => {
    let own: WorkflowHandle<typeof deliverEmail> | undefined;
    const { counts, ids, dueAt } = await deliver(t, 10 * DAY, async ({ ids: [moved, canceled], dueAt }) => {
      const later = dueAt + 5 * DAY;
      assert.ok(emails.reschedule(moved, later) && emails.cancel(canceled));
      groups.groupOf.delete(moved);
      const schedule = { version: 1, dueAt: new Date(later).toISOString() };
      own = await env().client.workflow.signalWithStart(deliverEmail, {
        workflowId: moved,
        taskQueue: 'messages',
        args: [{ id: moved, ...schedule, retry: RETRY }],
        signal: reschedule,
        signalArgs: [schedule],
      });
    });
    assert.deepEqual(counts, { scheduled: 1, canceled: 1, sent: 2 });
    const stop = await worker();
    assert.equal(await own?.result(), 'sent');
    await stop();
    const [moved, canceled, ...others] = ids;
    assert.ok(lateness(moved, dueAt + 5 * DAY) >= 0);
    assert.equal(emails.row(canceled).sentAt, undefined);
    for (const id of others) assert.ok(lateness(id, dueAt) >= 0 && lateness(id, dueAt) < MINUTE);
  });

  test('one that is not taken leaves, and the group ends', async (t) => {
    const { counts, ids } = await deliver(t, DAY, async ({ ids }) => {
      groups.answers.push({ but: [ids[2]] });
    });
    assert.deepEqual(counts, { sent: 3, detached: 1 });
    assert.equal(emails.row(ids[2]).status, 'queued');
  });

  test('a provider that takes nobody is tried again with all of them', async (t) => {
    const calls = groups.calls;
    groups.answers.push('busy', 'crash', 'busy');
    const { counts } = await deliver(t, null);
    assert.deepEqual(counts, { sent: 4 });
    assert.equal(groups.calls, calls + 3);
  });

  test('attempts are used up: all of them fail', async (t) => {
    groups.answers.push(...Array.from({ length: 4 }, () => 'busy' as const));
    const { counts, ids } = await deliver(t, null);
    assert.deepEqual(counts, { failed: 4 });
    for (const id of ids) assert.equal(emails.row(id).attempts, 4);
  });

  test('failures that never reached a provider do not use up its attempts', async (t) => {
    groups.answers.push(...Array.from({ length: 9 }, () => 'crash' as const));
    const { counts } = await deliver(t, null);
    assert.deepEqual(counts, { sent: 4 });
  });

  test('a clock that runs ahead of Postgres does not send early', async (t) => {
    groups.behind = 2_500;
    const { counts, ids, dueAt } = await deliver(t, DAY);
    groups.behind = 0;
    assert.deepEqual(counts, { sent: 4 });
    for (const id of ids) assert.ok(lateness(id, dueAt) >= 0);
  });

  test('pauses between rounds while Postgres answers again and again that it is due, at another version', async (t) => {
    groups.mismatches = 3;
    const { counts, ids, dueAt } = await deliver(t, DAY);
    groups.mismatches = 0;
    assert.deepEqual(counts, { sent: 4 });
    for (const id of ids) assert.ok(lateness(id, dueAt) >= 15_000, `three rounds in ${lateness(id, dueAt)} ms`);
  });

  test('ignores signals, whatever their payload', async (t) => {
    const { counts } = await deliver(t, DAY, async ({ handle }) => {
      for (const name of ['reschedule', 'cancel', 'wake']) await handle.signal<[unknown]>(name, null);
    });
    assert.deepEqual(counts, { sent: 4 });
  });

  test('canceled with Temporal’s own tools, what is scheduled is canceled', async (t) => {
    const { counts, ids } = await deliver(t, DAY, async ({ handle }) => {
      await handle.cancel();
    });
    assert.deepEqual(counts, { canceled: 4 });
    for (const id of ids) assert.equal(emails.row(id).sentAt, undefined);
  });
});
