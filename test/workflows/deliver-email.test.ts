import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import { deliverEmail, type DeliverMessage, reschedule, cancel } from '../../workflows/index.ts';
import { eventually } from '../support/eventually.ts';
import { keepHistory } from './histories.ts';
import { FakeMessages } from './fake-messages.ts';
import { useEnvironment } from './environment.ts';

const DAY = 86_400_000;
const MINUTE = 60_000;
const RETRY = { maximumAttempts: 4, initialInterval: 1_000, maximumInterval: 4_000 };

type Start = Pick<DeliverMessage, 'firstAttempt'> & { readonly taskQueue: string };

describe('deliverEmail', () => suite('local ', { taskQueue: 'email', firstAttempt: 'local' }));
describe('deliverEmail, started by an earlier version', () => suite('', { taskQueue: 'messages' }));

/** @param recorded the start of the names of its histories */
function suite(recorded: string, { taskQueue, firstAttempt }: Start): void {
  const { env, now, sleep, startWorkers } = useEnvironment();
  const emails = new FakeMessages(now);
  const worker = () => startWorkers({ email: emails.activities });
  let count = 0;

  interface Started {
    readonly id: string;
    readonly handle: WorkflowHandle<typeof deliverEmail>;
    /** Replaces the workers. */
    readonly restart: () => Promise<void>;
  }

  /**
   * Runs `act` on a started workflow while a worker serves, then waits for its result; time skips only then. The history is
   * kept under the test's name.
   */
  async function deliver(
    { name }: { name: string },
    dueIn: number | null,
    act: (started: Started) => Promise<void> = async () => undefined,
    retry = RETRY,
  ): Promise<{ id: string; result: string; handle: WorkflowHandle<typeof deliverEmail> }> {
    const id = `em_${++count}`;
    const dueAt = dueIn === null ? null : (await now()) + dueIn;
    emails.accept(id, dueAt);
    let stop = await worker();
    try {
      const input: DeliverMessage = {
        id,
        version: 0,
        dueAt: dueAt === null ? null : new Date(dueAt).toISOString(),
        retry,
        ...(firstAttempt && { firstAttempt }),
      };
      const handle = await env().client.workflow.start(deliverEmail, {
        workflowId: id,
        taskQueue,
        args: [input],
      });
      const restart = async () => {
        await stop();
        stop = await worker();
      };
      await act({ id, handle, restart });
      const result = await handle.result();
      await keepHistory(recorded + name, handle);
      return { id, result, handle };
    } finally {
      await stop();
    }
  }

  async function move(handle: WorkflowHandle<typeof deliverEmail>, id: string, dueAt: number): Promise<boolean> {
    if (!emails.reschedule(id, dueAt)) return false;
    await handle.signal(reschedule, { version: emails.row(id).version, dueAt: new Date(dueAt).toISOString() });
    return true;
  }

  function lateness(id: string): number {
    const { sentAt, dueAt } = emails.row(id);
    return (sentAt ?? Number.NaN) - dueAt;
  }

  function assertOnTime(id: string): void {
    assert.ok(lateness(id) >= 0 && lateness(id) < MINUTE, `late by ${lateness(id)} ms`);
  }

  test('an email that is due at once is sent at once', async (t) => {
    const began = await now();
    const { id, result } = await deliver(t, null);
    assert.equal(result, 'sent');
    assert.ok((emails.row(id).sentAt ?? 0) - began < MINUTE);
  });

  test('an attempt that succeeds is a local activity, unless an earlier version started it', async (t) => {
    const { handle } = await deliver(t, null);
    const events = (await handle.fetchHistory()).events ?? [];
    const scheduled = events.filter((event) => event.activityTaskScheduledEventAttributes);
    const local = events.filter((event) => event.markerRecordedEventAttributes?.markerName === 'core_local_activity');
    assert.deepEqual([scheduled.length, local.length], firstAttempt ? [0, 1] : [1, 0]);
  });

  test('an email 29 days ahead is sent then, not before', async (t) => {
    const { id, result } = await deliver(t, 29 * DAY);
    assert.equal(result, 'sent');
    assertOnTime(id);
  });

  test('rescheduled earlier after 10 of 29 days, it is sent at the earlier time', async (t) => {
    const { id, result } = await deliver(t, 29 * DAY, async ({ handle, id }) => {
      await sleep(10 * DAY);
      assert.ok(await move(handle, id, (await now()) + 2 * DAY));
    });
    assert.equal(result, 'sent');
    assertOnTime(id);
    assert.equal(emails.row(id).attempts, 1);
  });

  test('rescheduled later, twice, it is sent at the last time', async (t) => {
    const { id, result } = await deliver(t, DAY, async ({ handle, id }) => {
      await move(handle, id, (await now()) + 20 * DAY);
      await sleep(5 * DAY);
      assert.equal(emails.row(id).status, 'scheduled', 'its first time has passed');
      await move(handle, id, (await now()) + 24 * DAY);
    });
    assert.equal(result, 'sent');
    assertOnTime(id);
    assert.equal(emails.row(id).attempts, 1);
  });

  test('signals that arrive in the wrong order leave the newest time standing', async (t) => {
    const { id, result } = await deliver(t, DAY, async ({ handle, id }) => {
      const nowMs = await now();
      emails.reschedule(id, nowMs + 2 * DAY);
      emails.reschedule(id, nowMs + 3 * DAY);
      await handle.signal(reschedule, { version: 2, dueAt: new Date(nowMs + 3 * DAY).toISOString() });
      await handle.signal(reschedule, { version: 1, dueAt: new Date(nowMs + 2 * DAY).toISOString() });
    });
    assert.equal(result, 'sent');
    assertOnTime(id);
  });

  test('a reschedule that Postgres took while its signal is still on the way holds the email back', async (t) => {
    const { id, result } = await deliver(t, DAY, async ({ id }) => {
      emails.reschedule(id, (await now()) + 4 * DAY);
    });
    assert.equal(result, 'sent');
    assertOnTime(id);
    assert.equal(emails.row(id).attempts, 1);
  });

  test('canceled while it waits, it ends at once and is never sent', async (t) => {
    const { id, result, handle } = await deliver(t, 20 * DAY, async ({ handle, id }) => {
      await sleep(DAY);
      assert.ok(emails.cancel(id));
      await handle.signal(cancel);
    });
    assert.equal(result, 'canceled');
    assert.equal(emails.row(id).attempts, 0);
    const events = (await handle.fetchHistory()).events ?? [];
    assert.ok(!events.some((event) => event.timerFiredEventAttributes), 'it did not wait for its time');
  });

  test('a cancel that loses the race is refused, and the email is sent once', async (t) => {
    let canceled: boolean | undefined;
    const { id, result } = await deliver(t, DAY, async ({ handle }) => {
      emails.afterSend = async (id) => {
        canceled = emails.cancel(id);
        await handle.signal(cancel);
      };
    });
    emails.afterSend = async () => undefined;
    assert.equal(canceled, false);
    assert.equal(result, 'sent');
    assert.equal(emails.row(id).attempts, 1);
  });

  test('a cancel that wins the race at the last moment leaves nothing to send', async (t) => {
    emails.beforeClaim = (id) => void emails.cancel(id);
    const { id, result } = await deliver(t, DAY);
    emails.beforeClaim = () => undefined;
    assert.equal(result, 'canceled');
    assert.equal(emails.row(id).attempts, 0);
  });

  test('canceled with Temporal’s own tools, a scheduled email is canceled', async (t) => {
    const { id, result } = await deliver(t, 20 * DAY, async ({ handle }) => {
      await sleep(DAY);
      await handle.cancel();
    });
    assert.equal(result, 'canceled');
    assert.equal(emails.row(id).status, 'canceled');
  });

  test('a cancel signal that somebody sends by hand cancels the email too', async (t) => {
    const { id, result } = await deliver(t, 20 * DAY, ({ handle }) => handle.signal(cancel));
    assert.equal(result, 'canceled');
    assert.equal(emails.row(id).status, 'canceled');
  });

  test('a provider that is busy three times gets the email at the fourth attempt', async (t) => {
    emails.answers.push('busy', 'busy', 'busy');
    const { id, result } = await deliver(t, null);
    assert.equal(result, 'sent');
    assert.equal(emails.row(id).attempts, 4);
  });

  test('attempts are used up: the email fails', async (t) => {
    emails.answers.push('busy', 'busy', 'busy', 'busy');
    const { id, result } = await deliver(t, null);
    assert.equal(result, 'failed');
    assert.equal(emails.row(id).attempts, RETRY.maximumAttempts);
  });

  test('counts recorded attempts only, also in a round after one that was partly postponed', async (t) => {
    emails.answers.push('busy', { pausedFor: 10 }, 'busy', 'busy', 'busy');
    const { id, result } = await deliver(t, null);
    assert.deepEqual([result, emails.row(id).attempts], ['failed', RETRY.maximumAttempts]);
  });

  test('waits double from the first to the longest', async (t) => {
    emails.answers.push('busy', 'busy', 'busy', 'busy');
    const { handle } = await deliver(t, null);
    const events = (await handle.fetchHistory()).events ?? [];
    const scheduled = events.find((event) => event.activityTaskScheduledEventAttributes);
    const policy = scheduled?.activityTaskScheduledEventAttributes?.retryPolicy;
    assert.equal(Number(policy?.maximumInterval?.seconds), 4);
    assert.equal(policy?.backoffCoefficient, 2);
    // After a local attempt and a second of waiting, the activity has the rest.
    const rest = firstAttempt ? [2, 3] : [1, 4];
    assert.deepEqual([Number(policy.initialInterval?.seconds), policy.maximumAttempts], rest);
    const timers = events.filter((event) => event.timerStartedEventAttributes);
    const waits = timers.map(({ timerStartedEventAttributes: timer }) => Number(timer?.startToFireTimeout?.seconds));
    assert.deepEqual(waits, firstAttempt ? [1] : []);
  });

  test('the provider’s own waiting time is kept', async (t) => {
    emails.answers.push({ busyFor: 10 * MINUTE });
    const began = await now();
    const { id, result } = await deliver(t, null);
    assert.equal(result, 'sent');
    const waited = (emails.row(id).sentAt ?? 0) - began;
    assert.ok(waited >= 10 * MINUTE && waited < 12 * MINUTE, `waited ${waited} ms`);
  });

  test('a paused account is waited for, even if each message has a single attempt', async (t) => {
    emails.answers.push(...Array.from({ length: 6 }, () => ({ pausedFor: 10 * MINUTE })));
    const began = await now();
    const { id, result } = await deliver(t, null, undefined, { ...RETRY, maximumAttempts: 1 });
    assert.deepEqual([result, emails.row(id).attempts], ['sent', 1]);
    const waited = (emails.row(id).sentAt ?? 0) - began;
    assert.ok(waited >= 30 * MINUTE, `waited ${waited} ms`);
  });

  test('a scheduled email is sent although its claim was postponed more often than it has attempts', async (t) => {
    emails.answers.push(...Array.from({ length: 6 }, () => ({ suspendedFor: 10 * MINUTE })));
    const { id, result } = await deliver(t, MINUTE);
    assert.deepEqual([result, emails.row(id).attempts], ['sent', 1]);
    assert.ok(lateness(id) >= 30 * MINUTE, `late by ${lateness(id)} ms`);
  });

  test('a scheduled email that is rescheduled during its last attempt of a round is sent at its new time', async (t) => {
    emails.answers.push(...Array.from({ length: 3 }, () => ({ suspendedFor: MINUTE })));
    let attempts = 0;
    emails.beforeClaim = (id) => {
      if (++attempts !== RETRY.maximumAttempts) return;
      emails.reschedule(id, emails.row(id).dueAt + DAY);
      throw new Error('the database is away');
    };
    const { id, result } = await deliver(t, MINUTE);
    emails.beforeClaim = () => undefined;
    assert.equal(result, 'sent');
    assert.equal(attempts, RETRY.maximumAttempts + 2, 'one to learn the new time, and one at that time');
    assertOnTime(id);
  });

  test('failures that never reached a provider do not use up its attempts', async (t) => {
    emails.answers.push('crash', 'crash', 'crash', 'crash', 'busy', 'crash', 'crash', 'crash');
    const { id, result } = await deliver(t, null);
    assert.equal(result, 'sent');
    assert.equal(emails.row(id).attempts, 2);
  });

  test('a clock that runs ahead of Postgres does not send early', async (t) => {
    let early = true;
    emails.beforeClaim = (id) => {
      if (early) emails.row(id).dueAt += 3 * MINUTE;
      early = false;
    };
    const { id, result } = await deliver(t, DAY);
    emails.beforeClaim = () => undefined;
    assert.equal(result, 'sent');
    assertOnTime(id);
  });

  for (const [what, dueAt] of [
    ['in the past', '2020-01-01T00:00:00.000Z'],
    ['that is later than Postgres’s', null],
  ] as const) {
    test(`sends an email on time although a signal gave it a version ahead of Postgres and a time ${what}`, async (t) => {
      let attempts = 0;
      emails.beforeClaim = () => {
        attempts++;
      };
      const { id, result } = await deliver(t, DAY, async ({ handle }) => {
        const later = new Date((await now()) + 3 * DAY).toISOString();
        await handle.signal(reschedule, { version: 99, dueAt: dueAt ?? later });
      });
      emails.beforeClaim = () => undefined;
      assert.equal(result, 'sent');
      // Postgres's time is known to the workflow only once it has asked, which it does at the time of the signal.
      if (dueAt === null) assert.ok(lateness(id) < 2 * DAY + MINUTE, `late by ${lateness(id)} ms`);
      else assertOnTime(id);
      assert.ok(attempts <= 3, `${attempts} attempts`);
      assert.equal(emails.row(id).attempts, 1);
    });
  }

  test('takes a newer signal that comes during an attempt rather than Postgres’s answer', async (t) => {
    const { id, result } = await deliver(t, DAY, async ({ handle, id }) => {
      let isFirst = true;
      emails.beforeClaim = () => {
        if (isFirst) emails.row(id).dueAt += 2 * DAY;
        isFirst = false;
      };
      await handle.signal(reschedule, { version: 99, dueAt: '2020-01-01T00:00:00.000Z' });
      await eventually('the first attempt was made', () => !isFirst);
      await move(handle, id, (await now()) + 5 * DAY);
    });
    emails.beforeClaim = () => undefined;
    assert.equal(result, 'sent');
    assertOnTime(id);
  });

  test('sends at the time of a newer signal that comes while Postgres’s answer has a later time', async (t) => {
    const { id, result } = await deliver(t, MINUTE, async ({ handle, id }) => {
      emails.beforeClaim = () => {
        emails.beforeClaim = () => undefined;
        emails.reschedule(id, emails.row(id).dueAt + 10 * DAY);
      };
      emails.afterEarlyClaim = async () => {
        emails.afterEarlyClaim = async () => undefined;
        await move(handle, id, (await now()) + 60 * MINUTE);
      };
    });
    assert.equal(result, 'sent');
    assertOnTime(id);
  });

  test('ignores signals with a payload that is no schedule', async (t) => {
    const { id, result, handle } = await deliver(t, DAY, async ({ handle }) => {
      for (const payload of [
        null,
        undefined,
        7,
        'later',
        [],
        {},
        { version: null, dueAt: null },
        { version: '5', dueAt: null },
        { version: 1.5, dueAt: null },
        { version: 5 },
        { version: 5, dueAt: 'tomorrow' },
        { version: 5, dueAt: 20_000 },
      ]) {
        await handle.signal<[unknown]>('reschedule', payload);
      }
      await handle.signal('reschedule');
      await handle.signal<[unknown]>('nobody-knows-this', null);
    });
    assert.equal(result, 'sent');
    assertOnTime(id);
    const events = (await handle.fetchHistory()).events ?? [];
    assert.ok(!events.some((event) => event.workflowTaskFailedEventAttributes), 'no workflow task failed');
  });

  test('pauses between rounds while Postgres answers again and again that it is due, at another version', async (t) => {
    let attempts = 0;
    emails.beforeClaim = (id) => {
      if (++attempts < 6) emails.row(id).version++;
    };
    const began = await now();
    const { id, result } = await deliver(t, MINUTE);
    emails.beforeClaim = () => undefined;
    assert.equal(result, 'sent');
    assert.equal(attempts, 6);
    const took = (emails.row(id).sentAt ?? 0) - began - MINUTE;
    assert.ok(took >= 15_000, `five rounds in ${took} ms`);
  });

  test('a worker that is restarted while an email waits goes on from its history', async (t) => {
    const { id, result } = await deliver(t, 20 * DAY, async ({ handle, id, restart }) => {
      await sleep(DAY);
      await restart();
      await move(handle, id, (await now()) + 3 * DAY);
    });
    assert.equal(result, 'sent');
    assert.equal(emails.row(id).attempts, 1);
  });
}
