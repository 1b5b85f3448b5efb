import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { pino } from 'pino';
import { createEndpoint, editEndpoint, makeEndpointDeps, webhookSeal } from '../../src/accounts/webhooks.ts';
import type { WebhookDeps } from '../../src/delivery/webhooks/contract.ts';
import { startWebhookDispatcher } from '../../src/delivery/webhooks/dispatcher.ts';
import { MAX_IN_FLIGHT } from '../../src/delivery/webhooks/in-flight.ts';
import { makePublicPost } from '../../src/public-fetch/post.ts';
import { findEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { LEASE_MS } from '../../src/store/webhooks/leases.ts';
import { REACHABLE, site } from '../public-fetch/web.ts';
import { accept, newEmail, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { drainEndpoint } from '../support/webhooks.ts';

const { pool } = await useDatabase(20);
const intake = makeEndpointDeps(pool, () => undefined, SECRET_KEY, []);

/** A request to an endpoint. */
interface Post {
  readonly url: string;
  readonly id: string;
  readonly worker: string;
}
let posts: Post[] = [];
/** Answers a request; by default with 200. */
let respond: (post: Post) => Promise<number>;
const ending: (() => Promise<void>)[] = [];

/** The dependencies of a worker that posts to `posts`. */
function depsOf(worker: string, stopping: AbortSignal): WebhookDeps {
  return {
    pool,
    seal: webhookSeal(SECRET_KEY),
    connectToEndpoint: (url) => ({
      post: async (headers) => {
        const post = { url, id: headers['webhook-id'] ?? '', worker };
        posts.push(post);
        return { status: await respond(post), retryAfter: null, body: null };
      },
      close: () => undefined,
    }),
    idleTimeoutMs: 50,
    stopping,
    log: pino({ level: 'silent' }),
  };
}

/** Starts a worker. */
function startWorker(worker = 'first', pollIntervalMs?: number) {
  const stopping = new AbortController();
  const deps = depsOf(worker, stopping.signal);
  const dispatcher = startWebhookDispatcher(deps, pollIntervalMs);
  const stop = async () => {
    stopping.abort();
    await dispatcher.stop();
  };
  ending.push(stop);
  return { wake: dispatcher.wake, stop };
}

describe('webhook workers', () => {
  let orgId: string;
  let domain: string;
  let count = 0;
  beforeEach(async () => {
    posts = [];
    respond = () => Promise.resolve(200);
    domain = `o${++count}.example`;
    orgId = await organization(pool, domain);
  });
  afterEach(async () => {
    respond = () => Promise.resolve(200);
    await Promise.all(ending.splice(0).map((end) => end()));
    await pool.query('TRUNCATE webhook_endpoints, webhook_deliveries');
  });

  const endpoint = async (path: string): Promise<string> =>
    (await createEndpoint(intake, orgId, { url: `https://example.com/${path}`, events: [], description: null })).id;
  const mail = (n = 1) =>
    accept(
      pool,
      orgId,
      Array.from({ length: n }, () => newEmail({ from_domain: domain })),
    );
  const pendingCount = async (): Promise<number> =>
    (await pool.query(`SELECT FROM webhook_deliveries WHERE status = 'pending'`)).rows.length;
  const failedCount = async (): Promise<number> =>
    (await pool.query('SELECT FROM webhook_deliveries WHERE tries > 0')).rows.length;
  const leases = async () =>
    (
      await pool.query<{ leased_by: string; url: string }>(
        'SELECT leased_by, url FROM webhook_endpoints WHERE leased_by IS NOT NULL',
      )
    ).rows;
  const postsTo = (path: string) => posts.filter(({ url }) => url.endsWith(`/${path}`));

  test('post what is due, and what becomes due later, to all endpoints', async () => {
    await endpoint('a');
    await endpoint('b');
    await mail();
    startWorker();
    await eventually('both get the first event', () => posts.length === 2);
    await eventually('the endpoints are released', async () => (await leases()).length === 0);
    await mail();
    await eventually('both get the second one', () => posts.length === 4);
    await eventually('all are recorded', async () => (await pendingCount()) === 0);
  });

  test('post what is due when they are woken, and stop, without waiting for the next poll', async (t) => {
    // Its stop signal would keep each composite signal until it stops.
    const any = t.mock.method(AbortSignal, 'any');
    await endpoint('a');
    const { wake, stop } = startWorker('first', 3_600_000);
    await eventually('it has polled in vain', async () => {
      const { rows } = await pool.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle' AND query LIKE '%FROM pending%'`,
      );
      return rows.length > 0;
    });
    await mail();
    wake();
    await eventually('it is posted', () => posts.length === 1);
    await stop();
    assert.equal(any.mock.callCount(), 0);
  });

  test('serve the other endpoints while one hangs and has many deliveries', async () => {
    await endpoint('hangs');
    await mail(100);
    let release = (): void => undefined;
    const released = new Promise<number>((resolve) => (release = () => resolve(200)));
    respond = ({ url }) => (url.endsWith('/hangs') ? released : Promise.resolve(200));
    startWorker();
    await eventually('its requests are in flight', () => postsTo('hangs').length === 32);
    await endpoint('healthy');
    await mail(50);
    await eventually('the other one gets everything', () => postsTo('healthy').length === 50);
    assert.equal(postsTo('hangs').length, 32);
    release();
  });

  test('deliver to an endpoint while the name servers of others of its organization do not answer', async (t) => {
    const web = await site(t, (_, response) => response.end());
    const slow: string[] = [];
    for (let i = 0; i < 12; i++) slow.push(await endpoint(`${i}`));
    const healthy = await endpoint('healthy');
    await pool.query('UPDATE webhook_endpoints SET url = $2 WHERE id = $1', [
      healthy,
      `http://healthy.example:${web.port}/`,
    ]);
    await mail();
    const resolve = (name: string) =>
      name === 'healthy.example'
        ? Promise.resolve([{ address: REACHABLE, family: 4 }])
        : new Promise<never>(() => undefined);
    const connectToEndpoint = makePublicPost({ allowedCidrs: [REACHABLE], resolve }, 2_000);
    const deps = { ...depsOf('first', new AbortController().signal), connectToEndpoint };
    await Promise.all([...slow, healthy].map((id) => drainEndpoint(deps, id)));
    const { rows } = await pool.query<{ endpoint_id: string }>(
      `SELECT endpoint_id FROM webhook_deliveries WHERE status = 'succeeded'`,
    );
    assert.deepEqual(rows, [{ endpoint_id: healthy }]);
  });

  test('read as many deliveries together as a lease allows, and post all of them', async (t) => {
    const id = await endpoint('a');
    await mail(250);
    for (const [maxRead, limit] of [
      [1, MAX_IN_FLIGHT],
      [70, 70],
      [Infinity, 200],
    ] as const) {
      await pool.query(`UPDATE webhook_deliveries SET status = 'pending', next_attempt_at = now()`);
      posts = [];
      const query = t.mock.method(pool, 'query');
      await drainEndpoint(depsOf('first', new AbortController().signal), id, maxRead);
      query.mock.restore();
      const reads = query.mock.calls.flatMap(({ arguments: [statement] }) => {
        const { name, values } = statement as unknown as { name?: string; values?: unknown[] };
        return name === 'find_due' ? [values?.[2]] : [];
      });
      assert.deepEqual([...new Set(reads)], [limit]);
      assert.equal(new Set(posts.map(({ id: event }) => event)).size, 250);
    }
  });

  test('share endpoints, and never serve one at the same time', async () => {
    for (let i = 0; i < 150; i++) await endpoint(`${i}`);
    await mail(3);
    const serving = new Map<string, string>();
    const conflicts: string[] = [];
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    respond = async ({ url, worker }) => {
      const other = serving.get(url) ?? worker;
      if (other !== worker) conflicts.push(url);
      serving.set(url, worker);
      await released;
      return 200;
    };
    for (const name of ['first', 'second']) startWorker(name);
    await eventually('each endpoint is served', () => serving.size === 150);
    release();
    await eventually('all are delivered', async () => (await pendingCount()) === 0);
    assert.equal(posts.length, 450);
    assert.equal(new Set(posts.map(({ url, id }) => `${url} ${id}`)).size, 450);
    assert.deepEqual(conflicts, []);
    assert.deepEqual(new Set(serving.values()), new Set(['first', 'second']));
  });

  for (const [status, isRead] of [
    [500, true],
    [500, false],
    [410, true],
  ] as const) {
    const when = isRead ? 'after' : 'before';
    test(`retry a ${status} of a former URL that ends ${when} the worker has read the new one, and do not count it`, async (t) => {
      const id = await endpoint('former');
      await mail(2);
      let fail = (): void => undefined;
      const failed = new Promise<number>((resolve) => (fail = () => resolve(status)));
      respond = () => (posts.length === 1 ? Promise.resolve(500) : failed);
      const draining = drainEndpoint(depsOf('first', new AbortController().signal), id);
      await eventually('one has failed and one is in flight', async () => (await failedCount()) === 1);
      const query = t.mock.method(pool, 'query');
      await editEndpoint(intake, orgId, id, { url: 'https://example.com/latest' });
      const readCount = () =>
        query.mock.calls.filter(({ arguments: [statement] }) =>
          /open_endpoint/.test(String((statement as { name?: string }).name)),
        ).length;
      if (isRead) await eventually('the new URL is read', () => readCount() >= 2);
      fail();
      await draining;
      assert.deepEqual([postsTo('former').length, posts.length], [2, 2]);
      assert.equal(await pendingCount(), 2);
      const latest = await findEndpoint(pool, orgId, id);
      assert.deepEqual([latest?.status, latest?.failing_since], ['enabled', null]);
    });
  }

  test('retry a 410 of a former URL that ends while the worker stops', async () => {
    const id = await endpoint('former');
    await mail();
    let respondGone = (): void => undefined;
    const gone = new Promise<number>((resolve) => (respondGone = () => resolve(410)));
    respond = () => gone;
    const stopping = new AbortController();
    const draining = drainEndpoint(depsOf('first', stopping.signal), id);
    await eventually('it is in flight', () => posts.length === 1);
    stopping.abort();
    await editEndpoint(intake, orgId, id, { url: 'https://example.com/latest' });
    respondGone();
    await draining;
    assert.equal(await pendingCount(), 1);
  });

  test('take over the endpoints of a worker that died, once its leases have lapsed', async () => {
    const id = await endpoint('a');
    await mail();
    await pool.query(
      `UPDATE webhook_endpoints SET leased_by = 'dead', leased_until = now() + interval '1 hour' WHERE id = $1`,
      [id],
    );
    await endpoint('b');
    await mail();
    startWorker();
    await eventually('the other endpoint is served', () => postsTo('b').length === 1);
    assert.equal(postsTo('a').length, 0);
    await pool.query(`UPDATE webhook_endpoints SET leased_until = now() - interval '1 s' WHERE id = $1`, [id]);
    await eventually('both deliveries are posted', () => postsTo('a').length === 2);
  });

  test('keep their leases while a request takes long', async () => {
    const id = await endpoint('a');
    await mail();
    let release = (): void => undefined;
    const released = new Promise<number>((resolve) => (release = () => resolve(200)));
    respond = () => released;
    startWorker();
    await eventually('it is posted', () => posts.length === 1);
    const isLeasedFor = async (seconds: number) =>
      (
        await pool.query(`SELECT FROM webhook_endpoints WHERE leased_until > now() + make_interval(secs => $1)`, [
          seconds,
        ])
      ).rows.length === 1;
    await pool.query(`UPDATE webhook_endpoints SET leased_until = now() + interval '10 s' WHERE id = $1`, [id]);
    await eventually('the lease is renewed', () => isLeasedFor(11));
    await pool.query(`UPDATE webhook_endpoints SET leased_until = now() - interval '1 s' WHERE id = $1`, [id]);
    await eventually('it is leased again after it has lapsed', () => isLeasedFor(1));
    await mail();
    await eventually('the next one is posted', () => new Set(posts.map((post) => post.id)).size === 2);
    release();
    await eventually('both are recorded', async () => (await pendingCount()) === 0);
    assert.equal(posts.length, 2, 'the one in flight is not posted again');
  });

  test('start no attempt after their lease may have lapsed', async (t) => {
    await endpoint('a');
    await mail(100);
    let [release, time] = [(): void => undefined, 0];
    const released = new Promise<number>((resolve) => (release = () => resolve(200)));
    respond = () => released;
    const now = performance.now.bind(performance);
    startWorker();
    await eventually('requests are in flight', () => posts.length === 32);
    await pool.query(`UPDATE webhook_endpoints SET leased_by = 'other', leased_until = now() + interval '1 hour'`);
    t.mock.method(performance, 'now', () => now() + time);
    time = LEASE_MS;
    release();
    await eventually('they are recorded', async () => (await pendingCount()) === 68);
    assert.equal(posts.length, 32);
    assert.deepEqual(
      (await leases()).map(({ leased_by }) => leased_by),
      ['other'],
      'the lease of the other worker stays',
    );
  });

  test('serve other endpoints when one cannot be served, and try it again when its lease has lapsed', async () => {
    const id = await endpoint('a');
    await endpoint('b');
    await mail();
    const { rows } = await pool.query<{ secret: Buffer }>(
      `UPDATE webhook_endpoints AS endpoint SET secret = '\\x00' FROM webhook_endpoints AS before
       WHERE endpoint.id = $1 AND before.id = endpoint.id RETURNING before.secret`,
      [id],
    );
    startWorker();
    await eventually('the other endpoint is served', () => postsTo('b').length === 1);
    await eventually('it has failed', async () => (await leases()).length === 1);
    await pool.query('UPDATE webhook_endpoints SET secret = $2, leased_until = now() WHERE id = $1', [
      id,
      rows[0]?.secret,
    ]);
    await eventually('it is served', () => postsTo('a').length === 1);
  });

  test('finish requests in flight when they stop, start none, and release their endpoints', async () => {
    await endpoint('a');
    await mail(100);
    let release = (): void => undefined;
    const released = new Promise<number>((resolve) => (release = () => resolve(200)));
    respond = () => released;
    const worker = startWorker();
    await eventually('requests are in flight', () => posts.length === 32);
    const stopped = worker.stop();
    release();
    await stopped;
    assert.deepEqual([posts.length, await pendingCount(), (await leases()).length], [32, 68, 0]);
  });
});
