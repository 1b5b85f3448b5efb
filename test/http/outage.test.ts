import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { eventually } from '../support/eventually.ts';
import { lived } from '../support/lived.ts';
import { type Answer, assertRefused, inFuture, type Organization, type Service, startService } from './service.ts';

type State = 'open' | 'refusing' | 'silent';

/** The way to Postgres, which can be shut: refusing connections, or taking them and never answering. */
interface Way {
  readonly url: string;
  /** Breaks the connections there are when it changes anything. */
  readonly set: (state: State) => Promise<void>;
  readonly close: () => Promise<void>;
}

async function makeWay(databaseUrl: string): Promise<Way> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let state: State = 'open';
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    if (state === 'silent') return;
    const upstream = connect(Number(target.port), target.hostname);
    upstream.on('error', () => socket.destroy()).on('close', () => socket.destroy());
    socket.on('close', () => upstream.destroy());
    socket.pipe(upstream).pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String(port);
  const breakAll = async () => {
    for (const socket of sockets) socket.destroy();
    if (server.listening) {
      server.close();
      await once(server, 'close');
    }
  };
  return {
    url: url.href,
    async set(wanted) {
      if (wanted === state) return;
      state = wanted;
      await breakAll();
      if (state === 'refusing') return;
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
    },
    close: breakAll,
  };
}

/** Owns the database, and reaches it the straight way. */
let bystander: Service;
let way: Way;
let pool: Pool;
let service: Service;
let ours: Organization;
let id: string;
before(async () => {
  bystander = await startService();
  ours = await bystander.organization();
  id = await ours.sent({ scheduled_at: inFuture({ hours: 3 }) });
  way = await makeWay(bystander.databaseUrl);
  pool = makePool(way.url, 'outage', 5, () => undefined);
  service = await startService({ pool, databaseUrl: way.url });
});
after(async () => {
  await service.close();
  await pool.end();
  await way.close();
  await bystander.close();
});

/** Asks /readyz after its last answer has expired: it looks at most once a second. */
async function readiness(): Promise<Answer> {
  await sleep(1_100);
  return service.call('GET', '/readyz');
}

const send = (fields: object = {}) =>
  service.call('POST', '/v1/emails', { key: ours.key, json: ours.mail({ ...fields }) });
const requests: Readonly<Record<string, () => Promise<Answer>>> = {
  send: () => send(),
  read: () => service.call('GET', `/v1/emails/${id}`, { key: ours.key }),
  move: () =>
    service.call('PATCH', `/v1/emails/${id}`, { key: ours.key, json: { scheduled_at: inFuture({ hours: 1 }) } }),
  readiness,
};

describe('503 unavailable: database unreachable', () => {
  for (const state of ['refusing', 'silent'] as const) {
    for (const [what, ask] of Object.entries(requests)) {
      it(`${what}, with Postgres ${state}: Retry-After and no internals; and works when it is back`, async () => {
        assert.ok((await ask()).status < 500);
        await way.set(state);
        const from = lived();
        const answer = await ask();
        assertRefused(answer, 503, 'unavailable', undefined, 'the service cannot reach its database');
        assert.ok(Number(answer.headers['retry-after']) >= 1);
        assert.ok(lived() - from < 7_000);
        await way.set('open');
        assert.ok((await ask()).status < 500);
      });
    }
  }

  it('nobody is let in by a key that cannot be looked up: one that was used just now for a moment at most', async () => {
    const ask = () => service.call('GET', '/v1/nothing', { key: ours.key });
    assertRefused(await ask(), 404, 'not_found');
    await way.set('refusing');
    const answer = await eventually(
      'refused',
      async () => {
        const { status, ...more } = await ask();
        return status !== 404 && { status, ...more };
      },
      1_500,
    );
    assertRefused(answer, 503, 'unavailable', undefined, 'the service cannot reach its database');
    await way.set('open');
    await eventually('let in again', async () => (await ask()).status === 404);
  });

  it('the process lives on, and says so', async () => {
    await way.set('refusing');
    assert.equal((await service.call('GET', '/healthz')).status, 200);
    assert.equal((await service.call('GET', '/openapi.json')).status, 200);
    assertRefused(await service.call('GET', '/v1/nothing'), 401, 'unauthorized');
    await way.set('open');
  });

  it('no false 202: what was accepted while the database came and went is there, once', async () => {
    const accepted: string[] = [];
    let ended = false;
    const sending = Array.from({ length: 4 }, async () => {
      while (!ended) {
        const answer = await send();
        if (answer.status === 202) accepted.push((answer.body as { id: string }).id);
        else assertRefused(answer, 503, 'unavailable');
      }
    });
    const sent = Promise.all(sending);
    // It is waited for below; until then a failure must not end the test with the way shut.
    sent.catch(() => (ended = true));
    const isOver = () => ended;
    for (let i = 0; (i < 10 || accepted.length <= 10) && !isOver(); i++) {
      await sleep(60);
      await way.set('refusing');
      await sleep(20);
      await way.set('open');
    }
    await sleep(60);
    ended = true;
    await sent;
    const { rows } = await pool.query<{ id: string }>('SELECT id FROM emails JOIN email_bodies ON email_id = id');
    const stored = new Set(rows.map((row) => row.id));
    assert.deepEqual(
      accepted.filter((each) => !stored.has(each)),
      [],
    );
  });

  it('a server that ends our connections, as in a restart, costs 503 at most', async () => {
    for (let i = 0; i < 5; i++) {
      const sends = Array.from({ length: 10 }, () => send());
      await pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      );
      for (const answer of await Promise.all(sends)) {
        if (answer.status !== 202) assertRefused(answer, 503, 'unavailable');
      }
    }
    assert.equal((await send()).status, 202);
  });
});

describe('readiness', () => {
  it('needs the schema of this version', async () => {
    await pool.query('ALTER TABLE migrations RENAME TO migrations_away');
    assertRefused(await readiness(), 503, 'unavailable', undefined, 'the database lacks migrations');
    await pool.query('CREATE TABLE migrations (name text)');
    assertRefused(await readiness(), 503, 'unavailable', undefined, 'the database lacks migrations');
    await pool.query('DROP TABLE migrations');
    await pool.query('ALTER TABLE migrations_away RENAME TO migrations');
    const { status, body } = await readiness();
    assert.deepEqual([status, body], [200, { status: 'ok' }]);
  });
});

describe('500 internal_error', () => {
  it('tells nothing of what went wrong, and stores nothing', async () => {
    await pool.query(`ALTER TABLE email_bodies ADD CONSTRAINT unlucky CHECK (body_bytes <> 7)`);
    const [before, failed, after] = [await send(), await send({ subject: 'unlucky', text: 'unlucky' }), await send()];
    assertRefused(failed, 500, 'internal_error', undefined, 'something went wrong on our side');
    assert.deepEqual([before.status, after.status], [202, 202]);
    const { rows } = await pool.query(`SELECT FROM emails WHERE subject = 'unlucky'`);
    assert.equal(rows.length, 0);
  });
});
