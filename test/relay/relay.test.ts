import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Writable } from 'node:stream';
import { afterEach, describe, test } from 'node:test';
import { pino } from 'pino';
import { type Relay, type RelayDeps, startRelay, TemporalUnreachable } from '../../src/relay/relay.ts';
import type { GroupRow, OutboxRow } from '../../src/store/outbox/outbox.ts';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { accept, newEmail, organization } from '../store/mail.ts';
import { databaseProxy } from '../store/proxy.ts';
import { lived } from '../support/lived.ts';

const { pool, url } = await useDatabase(20);
const orgId = await organization(pool);

describe('the relay', () => {
  const relays: Relay[] = [];
  const pools: Pool[] = [];

  afterEach(async () => {
    await Promise.all(relays.splice(0).map((relay) => relay.stop()));
    await Promise.all(pools.splice(0).map((each) => each.end()));
    await pool.query('DELETE FROM outbox');
  });

  interface Line {
    level: number;
    msg: string;
    message?: string;
  }

  /** A relay that carries out by `act`, and what it has carried. */
  function start(act: (row: OutboxRow) => Promise<void> = async () => undefined, deps: Partial<RelayDeps> = {}) {
    const carried: string[] = [];
    const lines: Line[] = [];
    const out = new Writable({ write: (line, _, done) => done(void lines.push(JSON.parse(String(line)) as Line)) });
    const relay = startRelay({
      pool,
      log: pino({ level: 'info' }, out),
      dispatch: async (row) => {
        await act(row);
        carried.push(row.message_id);
      },
      startsPerSecond: 1_000_000,
      ...deps,
    });
    relays.push(relay);
    return { relay, carried, lines, warnings: () => lines.filter(({ level }) => level === 40) };
  }

  async function leave(n = 1): Promise<string[]> {
    const emails = Array.from({ length: n }, () => newEmail());
    await accept(pool, orgId, emails);
    return emails.map(({ id }) => id);
  }

  const left = async () => {
    const { rows } = await pool.query<{ message_id: string; tries: number; retry_at: string | null }>(
      'SELECT message_id, tries, retry_at FROM outbox ORDER BY id',
    );
    return rows;
  };
  const empty = () => eventually('the outbox is empty', async () => (await left()).length === 0);

  test('carries out what it finds when it begins, the oldest first, each once', async () => {
    const ids = await leave(250);
    const { carried } = start();
    await empty();
    assert.deepEqual([...carried].sort(), ids);
    assert.deepEqual(new Set(carried.slice(0, 100)), new Set(ids.slice(0, 100)));
  });

  test('carries a row at once when it is woken', async () => {
    const { relay, carried } = start();
    for (let i = 0; i < 5; i++) {
      await sleep(30);
      const [id] = await leave();
      const began = lived();
      relay.wake();
      await eventually('carried', () => carried.includes(id as string));
      assert.ok(lived() - began < 500, `${lived() - began} ms`);
    }
  });

  test('carries a row within about a second when nobody wakes it', async () => {
    const { carried } = start();
    await sleep(100);
    await leave();
    await eventually('carried', () => carried.length === 1, 2_000);
  });

  test('has a chore done that somebody asks for, once for all who have asked by then', async () => {
    const rows: OutboxRow[] = [];
    const ask = (times: number) =>
      pool.query(`INSERT INTO outbox (message_id, action) SELECT 'sweep', 'chore' FROM generate_series(1, $1)`, [
        times,
      ]);
    await ask(5);
    start(async (row) => void rows.push(row));
    await empty();
    assert.deepEqual(
      rows.map(({ action, message_id }) => [action, message_id]),
      [['chore', 'sweep']],
    );
    await ask(1);
    await empty();
    assert.equal(rows.length, 2);
  });

  test('misses no wake that comes while it works', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    await leave();
    const { relay, carried } = start(async () => (carried.length === 0 ? held : undefined));
    await sleep(100);
    const [second] = await leave();
    relay.wake();
    release();
    const began = lived();
    await eventually('carried', () => carried.includes(second as string));
    assert.ok(lived() - began < 500);
  });

  test('looks once for many wakes', async () => {
    let looks = 0;
    const counting = { connect: () => (looks++, pool.connect()) } as unknown as Pool;
    const { relay } = start(undefined, { pool: counting });
    await sleep(100);
    const before = looks;
    for (let i = 0; i < 10_000; i++) relay.wake();
    await sleep(200);
    assert.ok(looks - before <= 2, `${looks - before} looks`);
  });

  test('shares the outbox with others: each row is carried, and while nothing fails only once', async () => {
    const both = Array.from({ length: 4 }, () => start(() => sleep(Math.random() * 5)));
    const ids = await leave(1_000);
    for (const { relay } of both) relay.wake();
    await empty();
    const carried = both.flatMap((each) => each.carried);
    assert.deepEqual([...carried].sort(), ids);
    const busy = both.filter((each) => each.carried.length > 0);
    assert.ok(busy.length > 1, 'several of them worked');
  });

  test('puts together what its budget does not reach for, and carries the rest as the budget allows', async () => {
    const ids = await leave(1_200);
    const groups: GroupRow[] = [];
    const act = async (row: OutboxRow) => {
      if (row.action === 'group') groups.push(row);
    };
    const { carried } = start(act, { startsPerSecond: 1 });
    await empty();
    const members = groups.flatMap((group) => group.members.map(({ id }) => id));
    assert.deepEqual(members.sort(), ids);
    assert.deepEqual(
      groups.map((group) => group.members.length),
      [500, 500, 200],
    );
    assert.equal(carried.length, 3);
  });

  test('a group takes one start out of the budget, and what is left waits for the next', async () => {
    await leave(600);
    const waiting: unknown[] = [];
    const act = async () => {
      const { rows } = await pool.query(`SELECT count(*)::int AS n FROM outbox WHERE action = 'start'`);
      waiting.push(rows[0]);
    };
    start(act, { startsPerSecond: 0.4 });
    await empty();
    assert.deepEqual(waiting, [{ n: 100 }, { n: 0 }]);
  });

  test('starts each by itself while the budget reaches', async () => {
    const ids = await leave(50);
    const { carried } = start(undefined, { startsPerSecond: 20 });
    await empty();
    assert.deepEqual(carried.sort(), ids);
  });

  test('an email that came singly does not stand behind a batch of thousands', async () => {
    for (let part = 0; part < 5; part++) {
      const members = Array.from({ length: 1_000 }, () => newEmail({ batch_id: 'bt_large' }));
      await accept(pool, orgId, members);
    }
    const [single] = await leave(1);
    const { carried } = start(undefined, { startsPerSecond: 20 });
    await empty();
    assert.equal(carried[0], single);
    assert.equal(carried.length, 1 + 10, 'and the batch makes ten groups');
  });

  test('in a flood all that comes in a tenth of a second shares one, also where the budget would reach', async () => {
    const groups: GroupRow[] = [];
    const act = async (row: OutboxRow) => {
      if (row.action === 'group') groups.push(row);
    };
    let time = 0;
    await leave(60);
    const { relay, carried } = start(act, { startsPerSecond: 20, now: () => time });
    await empty();
    for (let round = 0; round < 3; round++) {
      time += 100;
      await leave(10);
      relay.wake();
      await empty();
    }
    time += 100;
    assert.deepEqual(
      groups.map((group) => group.members.length),
      [60, 10, 10, 10],
    );
    const few = await leave(2);
    relay.wake();
    await empty();
    assert.deepEqual(carried.slice(4).sort(), few, 'it is over when no more come than may have their own');
  });

  test('a group whose start failed is started again with the same id and members', async () => {
    await leave(60);
    const tried: GroupRow[] = [];
    start(
      async (row) => {
        if (row.action !== 'group') return;
        tried.push(row);
        if (tried.length < 3) throw new TemporalUnreachable('Temporal cannot be reached');
      },
      { startsPerSecond: 20 },
    );
    await empty();
    const [first, ...again] = tried;
    assert.equal(again.length, 2);
    for (const each of again) assert.deepEqual(each, first);
    assert.equal(first?.members.length, 60);
  });

  test('keeps rows while Temporal is away, uncounted, and carries them when it is back', async () => {
    let away = true;
    const ids = await leave(3);
    const { carried, lines, warnings } = start(async () => {
      if (away) throw new TemporalUnreachable('Temporal cannot be reached');
    });
    await eventually('it has noticed', () => warnings().length === 1);
    await sleep(1_500);
    assert.deepEqual(
      (await left()).map(({ tries, retry_at }) => [tries, retry_at]),
      ids.map(() => [0, null]),
    );
    away = false;
    await empty();
    assert.deepEqual([...carried].sort(), ids);
    assert.equal(warnings().length, 1, 'one warning for the whole time');
    await eventually('it says so', () => lines.some(({ msg }) => msg === 'relay resumed'));
  });

  test('does not repeat what went through before Temporal went away', async () => {
    const ids = await leave(10);
    let away = true;
    const { carried } = start(async ({ message_id }) => {
      if (away && message_id >= (ids[5] as string)) throw new TemporalUnreachable('away');
    });
    await eventually('half of it is done', async () => (await left()).length === 5);
    away = false;
    await empty();
    assert.deepEqual([...carried].sort(), ids);
  });

  test('puts a row off that Temporal refuses, says so, and goes on with the others', async () => {
    const ids = await leave(120);
    const poison = ids[3] as string;
    let mended = false;
    const { carried, lines, warnings } = start(async ({ message_id }) => {
      if (message_id === poison && !mended) throw new Error('search attribute is missing');
    });
    await eventually('the others are gone', async () => (await left()).length === 1);
    const [row] = await left();
    assert.deepEqual([row?.message_id, row?.tries, carried.length], [poison, 1, 119]);
    assert.notEqual(row?.retry_at, null);
    const error = lines.find(({ level }) => level === 50);
    assert.deepEqual([error?.message, error?.msg], [poison, 'Temporal refused an outbox row']);
    assert.equal(warnings().length, 0);
    mended = true;
    await empty();
    assert.deepEqual([...carried].sort(), ids);
  });

  test('finishes the rows it holds when it is stopped, and takes no more', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    await leave(150);
    const { relay, carried } = start(() => held);
    await sleep(200);
    let stopped = false;
    const stopping = relay.stop().then(() => (stopped = true));
    await sleep(200);
    assert.equal(stopped, false);
    release();
    await stopping;
    assert.equal(carried.length, 100);
    assert.equal((await left()).length, 50);
  });

  test('stops at once while it waits, and while it backs off', async () => {
    const waiting = start();
    const failing = start(async () => {
      throw new TemporalUnreachable('away');
    });
    await leave();
    failing.relay.wake();
    await sleep(200);
    const began = lived();
    await Promise.all([waiting.relay.stop(), failing.relay.stop()]);
    assert.ok(lived() - began < 600);
  });

  test('carries a row again whose transaction was lost in the middle, and lives on', async () => {
    const broken = makePool(url, 'relay test', 2, () => undefined);
    pools.push(broken);
    const [id] = await leave();
    let killed = false;
    const { carried } = start(
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
    await empty();
    assert.deepEqual(carried, [id, id]);
  });

  test('hands a row over when another relay vanishes in the middle of its transaction and its connection stays open', async (t) => {
    const proxy = await databaseProxy(url);
    t.after(() => proxy.close());
    const vanishing = makePool(`${proxy.url}?query_timeout=1000`, 'vanishing', 1, () => undefined, 2_000);
    pools.push(vanishing);
    let asked = false;
    const over = new AbortController();
    const [id] = await leave();
    start(
      async () => {
        asked = true;
        proxy.silence();
        await once(over.signal, 'abort');
      },
      { pool: vanishing },
    );
    await eventually('the relay that vanishes holds the row', () => asked);
    const { carried } = start();
    await eventually('the other relay has carried the row', () => carried.includes(id as string), 60_000);
    over.abort();
  });

  test('waits for a database that is away', async () => {
    const proxy = await databaseProxy(url);
    const far = makePool(proxy.url, 'relay test', 2, () => undefined);
    pools.push(far);
    const { carried, lines, warnings } = start(undefined, { pool: far });
    await proxy.close();
    await eventually('it has noticed', () => warnings().length === 1);
    const [id] = await leave();
    await proxy.open();
    await eventually('carried', () => carried.length === 1);
    assert.deepEqual(carried, [id]);
    await eventually('it says so', () => lines.some(({ msg }) => msg === 'relay resumed'));
    await relays.splice(0)[0]?.stop();
    await proxy.close();
  });
});
