import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { makeAttemptRecorder } from '../../src/delivery/call.ts';
import { startWorkerLease, type WorkerLease } from '../../src/delivery/worker-lease.ts';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { recordHandOvers } from '../../src/store/emails/attempt-workers.ts';
import { beginAttempts } from '../../src/store/emails/attempts.ts';
import { isUnreachable, makePool } from '../../src/store/postgres/pool.ts';
import { smtpScript } from '../providers/smtp-script.ts';
import { captureLog } from '../support/captured-log.ts';
import { eventually } from '../support/eventually.ts';
import { organizationFixture } from '../support/organization.ts';
import { assertRemaining } from '../support/remaining.ts';
import { harness, harnessWithProvider } from './harness.ts';

const { pool, url, orgId } = await organizationFixture(10);
const { log } = captureLog('info');
const nothing = () => Promise.resolve();

/** A worker with a lease. Its end is that of its session, as after a kill. */
async function startWorker(): Promise<WorkerLease> {
  const sessions = makePool(url, 'test lease', 1, () => undefined);
  const lease = startWorkerLease(sessions, nothing, () => undefined);
  await eventually('the lease is held', () => lease.isHeld());
  const stop = async (): Promise<void> => {
    await lease.stop();
    if (!sessions.ended) await sessions.end();
  };
  after(stop);
  return { ...lease, stop };
}

/** An email that a worker claimed, and the harness of another worker that finds it. */
async function claimed(handedOver: boolean | null, settings: Parameters<typeof harnessWithProvider>[2] = {}) {
  const set = harnessWithProvider(pool, orgId, settings, 'smtp');
  const [lease, member] = [await startWorker(), await set.accept()];
  await pool.query(`UPDATE emails SET status = 'queued' WHERE id = $1`, [member.id]);
  const attempt = { message_id: member.id, n: 1, call: 'call_1', provider: 'smtp' };
  await beginAttempts(pool, [{ ...attempt, handedOver }], lease.worker);
  return { ...set, lease, member, attempt };
}

/** Ends a worker. Its session is gone a moment after its connection was closed. */
async function end({ stop, worker }: WorkerLease): Promise<void> {
  await stop();
  await eventually('the session has ended', async () => {
    const { rowCount } = await pool.query(`SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = $1`, [worker]);
    return rowCount === 0;
  });
}

describe('an SMTP call whose worker has died', () => {
  test('counts as ended once the worker has had no session for the time of GONE_WORKER_WAIT', async () => {
    const { lease, member, deliverOne, age, outcomes, provider } = await claimed(true);
    const first = await deliverOne(member);
    assert.deepEqual([first.state, 'afterMs' in first && first.afterMs], ['again', 20_000], 'the worker lives');
    await age(member.id, 600);
    assert.equal((await deliverOne(member)).state, 'again', 'the worker still lives');
    await end(lease);
    const second = await deliverOne(member);
    assert.ok(second.state === 'again');
    assertRemaining(second.afterMs, 20_000);
    await age(member.id, 19);
    assert.equal((await deliverOne(member)).state, 'again');
    await age(member.id, 1);
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.deepEqual([await outcomes(member.id), provider.took.length], [['risked', 'sent'], 1]);
  });

  test('makes its email a suspect only once the worker has no session', async () => {
    const { lease, member, deliverOne } = await claimed(true);
    const isSuspect = async () => {
      const { rows } = await pool.query<{ is: boolean }>(
        'SELECT suspected_at IS NOT NULL AS is FROM emails WHERE id = $1',
        [member.id],
      );
      return rows[0]?.is;
    };
    await deliverOne(member);
    assert.equal(await isSuspect(), false);
    await end(lease);
    await deliverOne(member);
    assert.equal(await isSuspect(), true);
  });

  test('is waited for as long as GONE_WORKER_WAIT states', async () => {
    const { lease, member, deliverOne, age } = await claimed(true, { goneWorkerWaitMs: 720_000 });
    await end(lease);
    await deliverOne(member);
    await age(member.id, 600);
    assert.equal((await deliverOne(member)).state, 'again');
    await age(member.id, 120);
    assert.equal((await deliverOne(member)).state, 'ended');
  });

  test('is waited for like that of a living worker once its session is back', async () => {
    const { lease, member, deliverOne, age, outcomes } = await claimed(true);
    await pool.query(`UPDATE attempts SET denied_at = now() WHERE message_id = $1`, [member.id]);
    await age(member.id, 60);
    assert.equal((await deliverOne(member)).state, 'again');
    await end(lease);
    assert.equal((await deliverOne(member)).state, 'again', 'the time without a session begins anew');
    assert.deepEqual(await outcomes(member.id), [null]);
  });

  test('is neither waited for nor counted as a repeat if the message was not handed over', async () => {
    const settings = { ambiguousSend: 'fail' } as const;
    const { lease, member, deliverOne, outcomes, provider, attempt } = await claimed(false, settings);
    assert.equal((await deliverOne(member)).state, 'again', 'the worker lives');
    await end(lease);
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.deepEqual([await outcomes(member.id), provider.took.length], [['again', 'sent'], 1]);
    assert.deepEqual(await recordHandOvers(pool, [attempt]), [false], 'nor can it be handed over any more');
  });

  test('is handled as before if its worker did not record whether the message was handed over', async () => {
    const { lease, member, deliverOne, age, outcomes } = await claimed(null);
    await end(lease);
    await deliverOne(member);
    await age(member.id, 20);
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.deepEqual(await outcomes(member.id), ['risked', 'sent']);
  });
});

describe('a worker', () => {
  test('begins no attempt while its session is not open', async () => {
    const lease = await startWorker();
    const recorder = makeAttemptRecorder(pool, log, lease);
    const { deliverOne, accept, outcomes, provider } = harnessWithProvider(pool, orgId, { recorder }, 'smtp');
    const member = await accept();
    await end(lease);
    const result = await deliverOne(member);
    assert.deepEqual([result.state, 'postponed' in result && result.postponed], ['again', true]);
    // It may not have noticed yet.
    const unaware = { ...recorder, isBlocked: () => false };
    const late = harnessWithProvider(pool, orgId, { recorder: unaware }, 'smtp');
    await assert.rejects(late.deliverOne(member), (error) => isUnreachable(error));
    assert.deepEqual([await outcomes(member.id), provider.calls.length, late.provider.calls.length], [[], 0, 0]);
  });

  test('opens its session again under the same number after it was lost', async () => {
    const lease = await startWorker();
    const { rows } = await pool.query<{ pid: number }>(
      `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = $1`,
      [lease.worker],
    );
    await pool.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
    await eventually('another session holds the lock', async () => {
      const { rows: now } = await pool.query<{ pid: number }>(
        `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = $1`,
        [lease.worker],
      );
      return now[0] !== undefined && now[0].pid !== rows[0]?.pid;
    });
    await eventually('it is held', () => lease.isHeld());
    await end(lease);
  });
});

describe('the last bytes of a message', () => {
  test('leave after the hand-over is committed', async (t) => {
    const seen: unknown[] = [];
    const server = await smtpScript(t, { message: '250 taken' });
    const set = harness(pool, orgId, []);
    const recorder = {
      ...set.deps.recorder,
      async handOver(attempt: { readonly message_id: string; readonly n: number }) {
        seen.push(server.messages.length, await handedOver(attempt.message_id));
        await set.deps.recorder.handOver(attempt);
        seen.push(server.messages.length, await handedOver(attempt.message_id));
      },
    };
    const { deliverOne } = harness(pool, orgId, [], { ...set.deps, providers: [smtp(server.url)], recorder });
    assert.equal((await deliverOne(await set.accept())).state, 'ended');
    assert.deepEqual([...seen, server.messages.length], [0, false, 0, true, 1]);
  });

  test('do not leave if another worker has ended the attempt', async (t) => {
    const server = await smtpScript(t, { message: '250 taken' });
    const set = harness(pool, orgId, []);
    const recorder = {
      ...set.deps.recorder,
      async handOver(attempt: { readonly message_id: string; readonly n: number }) {
        await pool.query(`UPDATE attempts SET outcome = 'again' WHERE message_id = $1`, [attempt.message_id]);
        await set.deps.recorder.handOver(attempt);
      },
    };
    const { deliverOne } = harness(pool, orgId, [], { ...set.deps, providers: [smtp(server.url)], recorder });
    const member = await set.accept();
    assert.equal((await deliverOne(member)).state, 'again');
    await eventually('the connection is closed', () => server.connections.size === 0);
    assert.deepEqual([server.messages, await set.outcomes(member.id)], [[], ['again']]);
  });

  async function handedOver(id: string): Promise<boolean | null | undefined> {
    const { rows } = await pool.query<{ handed_over: boolean | null }>(
      'SELECT handed_over FROM attempts WHERE message_id = $1',
      [id],
    );
    return rows[0]?.handed_over;
  }
});
