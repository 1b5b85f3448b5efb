import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test, type TestContext } from 'node:test';
import type { Pool } from '../../src/store/postgres/pool.ts';
import { listenToOutbox, makeNotifier } from '../../src/store/postgres/wake.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { databaseProxy } from './proxy.ts';

const database = await useDatabase();

describe('waking relays', () => {
  /** Listens until the test ends; waits until it does. */
  async function listen(t: TestContext, url = database.url) {
    let wakes = 0;
    const stop = listenToOutbox(url, 'relay', () => wakes++);
    t.after(stop);
    return { stop, wakes: () => wakes };
  }

  const notify = () => database.pool.query('NOTIFY outbox');
  const listeners = async () => {
    const { rows } = await database.pool.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'sendwright relay listener' AND query = 'LISTEN outbox'`,
    );
    return rows.map(({ pid }) => pid);
  };

  test('a listener is woken when it starts and at every notice', async (t) => {
    const { wakes } = await listen(t);
    await eventually('woken at the beginning', () => wakes() === 1);
    await notify();
    await eventually('woken by a notice', () => wakes() === 2);
  });

  test('a listener whose connection is terminated reconnects and is woken', async (t) => {
    const { wakes } = await listen(t);
    await eventually('listening', () => wakes() === 1);
    for (const pid of await listeners()) await database.pool.query('SELECT pg_terminate_backend($1)', [pid]);
    await eventually('woken after reconnecting', () => wakes() === 2);
    await notify();
    await eventually('woken by a notice', () => wakes() === 3);
  });

  test('a listener waits for an unreachable database', async (t) => {
    const proxy = await databaseProxy(database.url);
    await proxy.close();
    const { wakes } = await listen(t, proxy.url);
    await sleep(1_500);
    assert.equal(wakes(), 0);
    await proxy.open();
    t.after(() => proxy.close());
    await eventually('woken when it is back', () => wakes() === 1);
  });

  test('a stopped listener gets no notices and holds no connection', async (t) => {
    const { wakes, stop } = await listen(t);
    await eventually('listening', () => wakes() === 1);
    await stop();
    await notify();
    await eventually('no connection is left', async () => (await listeners()).length === 0);
    assert.equal(wakes(), 1);
    await stop();
  });

  test('a notifier merges many calls into one notice', async (t) => {
    const { wakes } = await listen(t);
    await eventually('listening', () => wakes() === 1);
    const notifyRelays = makeNotifier(database.pool);
    for (let i = 0; i < 1_000; i++) notifyRelays();
    await eventually('woken', () => wakes() === 2);
    await sleep(200);
    assert.equal(wakes(), 2);
    notifyRelays();
    await eventually('woken again', () => wakes() === 3);
  });

  test('a notifier notifies immediately, and again after 50 ms at the earliest', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let sent = 0;
    const notifyRelays = makeNotifier({ query: () => Promise.resolve(sent++) } as unknown as Pool);
    notifyRelays();
    t.mock.timers.tick(1);
    assert.equal(sent, 1);
    notifyRelays();
    t.mock.timers.tick(10);
    assert.equal(sent, 1);
    t.mock.timers.tick(50);
    assert.equal(sent, 2);
  });

  test('a notifier ignores an unreachable database', async () => {
    makeNotifier({ query: () => Promise.reject(new Error('unreachable')) } as unknown as Pool)();
    await sleep(300);
  });
});
