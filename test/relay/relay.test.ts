import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'node:test';
import { TemporalUnreachable } from '../../src/relay/errors.ts';
import type { GroupRow, OutboxRow } from '../../src/store/outbox/outbox.ts';
import type { QueryConfig } from 'pg';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { organizationFixture } from '../support/organization.ts';
import { eventually } from '../support/eventually.ts';
import { unstalledMs } from '../support/unstalled-time.ts';
import { accept, acceptMany, inMs, newEmail } from '../store/mail.ts';
import { databaseProxy } from '../store/proxy.ts';
import { useRelays } from './harness.ts';

const { pool, url, orgId } = await organizationFixture(20);

const { start, pools, rowsLeft, isEmpty } = useRelays(pool);
/** The numbers of members of the groups that were dispatched. */
const groupSizes = (rows: readonly OutboxRow[]) =>
  rows.flatMap((row) => (row.action === 'group' ? [row.members.length] : []));

describe('the relay', () => {
  const store = (n = 1) => acceptMany(pool, orgId, n);

  test('dispatches the rows that it finds at its start once, oldest first', async () => {
    const ids = await store(250);
    const { ids: dispatched } = start();
    await isEmpty();
    assert.deepEqual(dispatched().sort(), ids);
    assert.deepEqual(new Set(dispatched().slice(0, 100)), new Set(ids.slice(0, 100)));
  });

  test('dispatches several requests for a maintenance task once', async () => {
    const request = (times: number) =>
      pool.query(`INSERT INTO outbox (message_id, action) SELECT 'sweep', 'chore' FROM generate_series(1, $1)`, [
        times,
      ]);
    await request(5);
    const { rows } = start();
    await isEmpty();
    await request(1);
    await isEmpty();
    assert.deepEqual(
      rows.map(({ action, message_id }) => [action, message_id]),
      [
        ['chore', 'sweep'],
        ['chore', 'sweep'],
      ],
    );
  });

  test('does not miss a wake during a dispatch', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    await store();
    const { wake, ids: dispatched } = start(async () => (dispatched().length === 0 ? held : undefined));
    await sleep(100);
    const [second] = await store();
    wake();
    release();
    await eventually('the second row is dispatched', () => dispatched().includes(second as string));
  });

  test('polls once for many wakes', async () => {
    let polls = 0;
    const counting = {
      connect: () => (polls++, pool.connect()),
      query: (query: QueryConfig) => {
        if (query.name !== 'take_relay_lease') polls++;
        return pool.query(query);
      },
    } as unknown as Pool;
    const began = performance.now();
    const { wake } = start(undefined, { pool: counting });
    await eventually('it has polled', () => polls > 0);
    const before = polls;
    for (let i = 0; i < 10_000; i++) wake();
    await eventually('it polls again', () => polls > before);
    // More polls for these wakes would follow within 10 ms each.
    await sleep(200);
    const withoutWake = Math.floor((performance.now() - began) / 1_000);
    assert.ok(polls - before <= 2 + withoutWake, `${polls - before} polls, ${withoutWake} of them without a wake`);
  });

  test('polls soon after a wake', async () => {
    const { wake, ids: dispatched } = start();
    const began = unstalledMs();
    for (let round = 0; round < 20; round++) {
      const [id = ''] = await store();
      wake();
      await eventually('the row is dispatched', () => dispatched().includes(id));
    }
    // Without wakes it polls every second.
    assert.ok(unstalledMs() - began < 10_000, `${unstalledMs() - began} ms`);
  });

  test('composes no signals, which its stop signal would keep until it stops', async (t) => {
    const any = t.mock.method(AbortSignal, 'any');
    const { wake, ids: dispatched } = start();
    for (let round = 1; round <= 3; round++) {
      await store();
      wake();
      await eventually('the row is dispatched', () => dispatched().length === round);
    }
    assert.equal(any.mock.callCount(), 0);
  });

  test('stops immediately during the pause between polls', async () => {
    const { stop, ids: dispatched } = start();
    await store();
    await eventually('the row is dispatched', () => dispatched().length === 1);
    await sleep(100);
    const began = unstalledMs();
    await stop();
    assert.ok(unstalledMs() - began < 500, `${unstalledMs() - began} ms`);
  });

  test('dispatches each row once while other relays dispatch too', async (t) => {
    // Without its row each of them gets the lease.
    const clearing = setInterval(() => void pool.query('DELETE FROM relay_lease'), 5);
    t.after(() => clearInterval(clearing));
    const relays = Array.from({ length: 4 }, () => start(() => sleep(Math.random() * 5)));
    const ids = await store(1_000);
    for (const { wake } of relays) wake();
    await isEmpty();
    const all = relays.flatMap((each) => each.ids());
    assert.deepEqual(all.sort(), ids);
    const busy = relays.filter((each) => each.rows.length > 0);
    assert.ok(busy.length > 1, 'several relays dispatched rows');
  });

  test('groups emails above its rate limit', async () => {
    const ids = await store(1_200);
    const { rows } = start(undefined, { startsPerSecond: 1 });
    await isEmpty();
    const members = rows.flatMap((row) => (row.action === 'group' ? row.members.map(({ id }) => id) : []));
    assert.deepEqual(members.sort(), ids);
    assert.deepEqual(groupSizes(rows), [500, 500, 200]);
    assert.equal(rows.length, 3);
  });

  test('dispatches a single email before a large batch', async () => {
    for (let part = 0; part < 5; part++) {
      const members = Array.from({ length: 1_000 }, () => newEmail({ batch_id: 'bt_large' }));
      await accept(pool, orgId, members);
    }
    const [single] = await store(1);
    const { ids: dispatched } = start(undefined, { startsPerSecond: 20 });
    await isEmpty();
    assert.equal(dispatched()[0], single);
    assert.equal(dispatched().length, 1 + 10, 'and the batch makes ten groups');
  });

  test('groups the emails of 100 ms in a burst, also below the rate limit', async () => {
    let time = 0;
    await store(45);
    const { wake, rows, ids: dispatched } = start(undefined, { startsPerSecond: 10, now: () => time });
    await isEmpty();
    for (let round = 0; round < 3; round++) {
      time += 100;
      await store(10);
      wake();
      await isEmpty();
    }
    time += 100;
    assert.deepEqual(groupSizes(rows), [45, 10, 10, 10]);
    const few = await store(1);
    wake();
    await isEmpty();
    assert.deepEqual(dispatched().slice(4).sort(), few, 'the burst has ended');
  });

  test('groups the emails of 300 ms after a round with 50 or more', async () => {
    let time = 0;
    await store(60);
    const { wake, rows } = start(undefined, { startsPerSecond: 20, now: () => time });
    await isEmpty();
    for (const round of [1, 2, 3]) {
      time += 100;
      await store(20);
      wake();
      if (round < 3) await sleep(50);
    }
    await isEmpty();
    assert.deepEqual(groupSizes(rows), [60, 60]);
  });

  test('groups the single emails of 300 ms while a batch is estimated to occupy the workers', async () => {
    let time = 0;
    const members = Array.from({ length: 1_000 }, () => newEmail({ batch_id: 'bt_large' }));
    await accept(pool, orgId, members);
    const { wake, rows, ids: dispatched } = start(undefined, { startsPerSecond: 20, now: () => time });
    await isEmpty();
    const arrive = async (n: number) => {
      const ids = await store(n);
      wake();
      return ids;
    };
    await arrive(2);
    await isEmpty();
    time = 100;
    await arrive(1);
    await sleep(50);
    assert.equal((await rowsLeft()).length, 1, 'the next round is after 300 ms');
    time = 200;
    await arrive(2);
    time = 300;
    await isEmpty();
    assert.deepEqual(groupSizes(rows), [500, 500, 2, 3]);
    time = 600;
    const small = Array.from({ length: 5 }, () => newEmail({ batch_id: 'bt_small' }));
    await accept(pool, orgId, small);
    wake();
    await isEmpty();
    time = 5_000;
    const later = await arrive(3);
    await isEmpty();
    const own = [...small.map(({ id }) => id), ...later];
    assert.deepEqual(dispatched().slice(4).sort(), own.sort(), 'a small batch, and single emails after the large one');
  });

  test('gives each email beside a batch that is scheduled its own workflow', async () => {
    const scheduled_at = inMs(3_600_000);
    const members = Array.from({ length: 1_000 }, () => newEmail({ batch_id: 'bt_later', scheduled_at }));
    await accept(pool, orgId, members);
    const { wake, rows } = start(undefined, { startsPerSecond: 20, now: () => 0 });
    await isEmpty();
    await store(3);
    wake();
    await isEmpty();
    assert.deepEqual(groupSizes(rows), [500, 500]);
    assert.equal(rows.length, 5);
  });

  test('retries a group with the same id and members', async () => {
    await store(60);
    const tried: GroupRow[] = [];
    start(
      async (row) => {
        if (row.action !== 'group') return;
        tried.push(row);
        if (tried.length < 3) throw new TemporalUnreachable('Temporal cannot be reached');
      },
      { startsPerSecond: 20 },
    );
    await isEmpty();
    const [first, ...again] = tried;
    assert.equal(again.length, 2);
    for (const each of again) assert.deepEqual(each, first);
    assert.equal(first?.members.length, 60);
  });

  test('keeps rows while Temporal is unreachable, without counting tries', async () => {
    let away = true;
    const ids = await store(3);
    const {
      ids: dispatched,
      lines,
      warnings,
    } = start(async () => {
      if (away) throw new TemporalUnreachable('Temporal cannot be reached');
    });
    await eventually('it has noticed', () => warnings().length === 1);
    await sleep(1_500);
    assert.deepEqual(
      (await rowsLeft()).map(({ tries, retry_at }) => [tries, retry_at]),
      ids.map(() => [0, null]),
    );
    away = false;
    await isEmpty();
    assert.deepEqual(dispatched().sort(), ids);
    assert.equal(warnings().length, 1, 'one warning for the whole time');
    await eventually('it is logged', () => lines.some(({ msg }) => msg === 'relay resumed'));
  });

  test('does not repeat rows that were dispatched before Temporal became unreachable', async () => {
    const ids = await store(10);
    let away = true;
    const { ids: dispatched } = start(async ({ message_id }) => {
      if (away && message_id >= (ids[5] as string)) throw new TemporalUnreachable('away');
    });
    await eventually('half of it is done', async () => (await rowsLeft()).length === 5);
    away = false;
    await isEmpty();
    assert.deepEqual(dispatched().sort(), ids);
  });

  test('defers and logs a row that Temporal refuses, and dispatches the others', async () => {
    const ids = await store(120);
    const poison = ids[3] as string;
    let mended = false;
    const {
      ids: dispatched,
      lines,
      warnings,
    } = start(async ({ message_id }) => {
      if (message_id === poison && !mended) throw new Error('search attribute is missing');
    });
    await eventually('the others are gone', async () => (await rowsLeft()).length === 1);
    const [row] = await rowsLeft();
    assert.deepEqual([row?.message_id, row?.tries, dispatched().length], [poison, 1, 119]);
    assert.notEqual(row?.retry_at, null);
    const error = lines.find(({ level }) => level === 50);
    assert.deepEqual([error?.message, error?.msg], [poison, 'Temporal refused an outbox row']);
    assert.equal(warnings().length, 0);
    mended = true;
    await isEmpty();
    assert.deepEqual(dispatched().sort(), ids);
  });

  test('finishes its locked rows when it is stopped, and locks no more', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    await store(150);
    const { stop, ids: dispatched } = start(() => held);
    await sleep(200);
    let stopped = false;
    const stopping = stop().then(() => (stopped = true));
    await sleep(200);
    assert.equal(stopped, false);
    release();
    await stopping;
    assert.equal(dispatched().length, 100);
    assert.equal((await rowsLeft()).length, 50);
  });

  test('dispatches a row again after its transaction was lost', async () => {
    const broken = makePool(url, 'relay test', 2, () => undefined);
    pools.push(broken);
    const [id] = await store();
    let killed = false;
    const { ids: dispatched } = start(
      async () => {
        if (killed) return;
        killed = true;
        await pool.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sendwright relay test'`,
        );
        await sleep(200);
      },
      { pool: broken },
    );
    await isEmpty();
    assert.deepEqual(dispatched(), [id, id]);
  });

  test('dispatches a row after another relay vanished during its transaction with an open connection', async (t) => {
    const proxy = await databaseProxy(url);
    t.after(() => proxy.close());
    const vanishing = makePool(`${proxy.url}?query_timeout=1000`, 'vanishing', 1, () => undefined, {
      idleInTransactionMs: 2_000,
    });
    pools.push(vanishing);
    let asked = false;
    const over = new AbortController();
    const [id] = await store();
    start(
      async () => {
        asked = true;
        proxy.silence();
        await once(over.signal, 'abort');
      },
      { pool: vanishing },
    );
    await eventually('the relay that vanishes holds the row', () => asked);
    const { ids: dispatched } = start();
    await eventually('the other relay has dispatched the row', () => dispatched().includes(id as string), 60_000);
    over.abort();
  });

  test('waits for an unreachable database', async () => {
    const proxy = await databaseProxy(url);
    const far = makePool(proxy.url, 'relay test', 2, () => undefined);
    pools.push(far);
    const { stop, ids: dispatched, lines, warnings } = start(undefined, { pool: far });
    await proxy.close();
    await eventually('it has noticed', () => warnings().length === 1);
    const [id] = await store();
    await proxy.open();
    await eventually('dispatched', () => dispatched().length === 1);
    assert.deepEqual(dispatched(), [id]);
    await eventually('it is logged', () => lines.some(({ msg }) => msg === 'relay resumed'));
    await stop();
    await proxy.close();
  });
});
