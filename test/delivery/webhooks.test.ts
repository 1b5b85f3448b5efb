import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { after, afterEach, describe, test } from 'node:test';
import { pino } from 'pino';
import { Webhook } from 'standardwebhooks';
import type { WebhookDeps } from '../../src/delivery/webhooks/contract.ts';
import { MAX_IN_FLIGHT } from '../../src/delivery/webhooks/in-flight.ts';
import {
  createEndpoint,
  editEndpoint,
  makeEndpointDeps,
  removeEndpoint,
  replayOne,
  rotateEndpoint,
  webhookSeal,
} from '../../src/accounts/webhooks.ts';
import { makePublicPost } from '../../src/public-fetch/post.ts';
import { findAttempts, type Delivery, listDeliveries } from '../../src/store/webhooks/deliveries.ts';
import { findEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { accept, newEmail, organization } from '../store/mail.ts';
import { proxiedPool } from '../store/proxy.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { drainEndpoint } from '../support/webhooks.ts';
import { assertRemaining } from '../support/remaining.ts';

const ADDRESS = '127.0.0.2';

interface Hit {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const { pool, url } = await useDatabase(20);
const hits: Hit[] = [];
let answer: (hit: Hit, response: ServerResponse) => void;
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const hit = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() };
    hits.push(hit);
    answer(hit, response);
  });
});
server.listen(0, ADDRESS);
await once(server, 'listening');
after(() => {
  server.closeAllConnections();
  server.close();
});
const base = `http://${ADDRESS}:${(server.address() as AddressInfo).port}`;
const intake = makeEndpointDeps(pool, () => undefined, SECRET_KEY, [ADDRESS]);
const deps: WebhookDeps = {
  pool,
  seal: webhookSeal(SECRET_KEY),
  connectToEndpoint: makePublicPost({ allowedCidrs: [ADDRESS] }, 60_000),
  idleTimeoutMs: 300,
  stopping: new AbortController().signal,
  log: pino({ level: 'silent' }),
};

describe('a run for an endpoint', () => {
  let orgId: string;
  let domain: string;
  let count = 0;
  afterEach(() => hits.splice(0));

  const respond =
    (status: number, headers: Record<string, string> = {}, body = 'ok') =>
    (_: Hit, response: ServerResponse) => {
      response.writeHead(status, headers).end(body);
    };

  /** An endpoint of a new organization. */
  async function endpoint(events: string[] = [], path = '/hook') {
    domain = `o${++count}.example`;
    orgId = await organization(pool, domain);
    return createEndpoint(intake, orgId, { url: base + path, events: events as never[], description: null });
  }

  /** Stores emails of that organization. @returns their ids */
  async function mail(n = 1): Promise<string[]> {
    const emails = Array.from({ length: n }, () => newEmail({ from_domain: domain }));
    await accept(pool, orgId, emails);
    return emails.map(({ id }) => id);
  }

  const work = (id: string, settings: Partial<WebhookDeps> = {}) => drainEndpoint({ ...deps, ...settings }, id);
  const deliveries = (id: string): Promise<Delivery[]> => listDeliveries(pool, id, null, null, 1_000);
  /** The only delivery of an endpoint, with its tries. */
  async function only(id: string) {
    const [delivery, ...more] = await deliveries(id);
    assert.ok(delivery && more.length === 0, `${more.length} more`);
    return { ...delivery, attempts: await findAttempts(pool, delivery.id) };
  }
  const state = async (id: string) => {
    const { rows } = await pool.query<
      Record<'leased_by' | 'status' | 'disabled_reason' | 'failing_since', string | null>
    >('SELECT leased_by, status, disabled_reason, failing_since FROM webhook_endpoints WHERE id = $1', [id]);
    return rows[0];
  };
  /** Makes deliveries that wait for a retry due. */
  const hurry = (id: string) =>
    pool.query(`UPDATE webhook_deliveries SET next_attempt_at = now() WHERE endpoint_id = $1 AND status = 'pending'`, [
      id,
    ]);

  test('signs the time of Postgres when the clock of the worker is wrong', async (t) => {
    answer = respond(200);
    const { id, secret } = await endpoint();
    await mail();
    const now = Date.now;
    const clock = t.mock.method(Date, 'now', () => now() + 600_000);
    await work(id);
    clock.mock.restore();
    const [hit] = hits;
    assert.ok(hit && new Webhook(secret).verify(hit.body, hit.headers as Record<string, string>));
  });

  test('posts due deliveries with a signature, and releases the endpoint when none is left', async () => {
    answer = respond(200);
    const { id, secret } = await endpoint();
    const [email] = await mail();
    assert.equal(await work(id), null);
    const [hit] = hits;
    const payload = new Webhook(secret).verify(hit?.body ?? '', hit?.headers as Record<string, string>) as {
      id: string;
      type: string;
      data: Record<string, unknown>;
    };
    assert.deepEqual(
      [payload.type, payload.data['emailId'], payload.data['status']],
      ['email.queued', email, 'queued'],
    );
    assert.equal(payload.data['subject'], 'Hello');
    const { attempts, ...delivery } = await only(id);
    assert.deepEqual([delivery.status, delivery.event_id, delivery.next_attempt_at], ['succeeded', payload.id, null]);
    assert.deepEqual(
      attempts.map(({ status_code, response, error }) => [status_code, response, error]),
      [[200, 'ok', null]],
    );
    assert.deepEqual(await state(id), {
      leased_by: null,
      status: 'enabled',
      disabled_reason: null,
      failing_since: null,
    });
  });

  test('posts each of many once, many at a time', async () => {
    let [open, most] = [0, 0];
    let release = (): void => undefined;
    const manyAreOpen = new Promise<void>((resolve) => (release = resolve));
    answer = (hit, response) => {
      most = Math.max(most, ++open);
      if (most > 10) release();
      void manyAreOpen.then(() => sleep(5)).then(() => respond(--open >= 0 ? 200 : 500)(hit, response));
    };
    const { id } = await endpoint();
    await mail(1_000);
    // On a busy machine more than one run.
    while ((await work(id)) !== null);
    const ids = hits.map(({ headers }) => headers['webhook-id']);
    assert.deepEqual([ids.length, new Set(ids).size], [1_000, 1_000]);
    assert.ok(most > 10 && most <= 32, `${most} at a time`);
    assert.ok((await deliveries(id)).every(({ status }) => status === 'succeeded'));
  });

  test('posts events that occur meanwhile', async () => {
    answer = respond(200);
    const { id } = await endpoint();
    await mail();
    const working = work(id, { idleTimeoutMs: 5_000 });
    await eventually('the first came', () => hits.length === 1);
    await mail();
    await eventually('the second came', () => hits.length === 2);
    await working;
  });

  test('records attempts in flight when Postgres fails meanwhile, and does not repeat them', async (t) => {
    const { proxy, pool: proxied } = await proxiedPool(t, url);
    const { id } = await endpoint();
    await mail();
    answer = (hit, response) => {
      void (async () => {
        await proxy.close();
        await sleep(500);
        await proxy.open();
        respond(200)(hit, response);
      })();
    };
    await assert.rejects(work(id, { pool: proxied }));
    assert.equal((await only(id)).status, 'succeeded');
    assert.equal(hits.length, 1);
  });

  test('retries a failure after the times of decisions 7.3, with the same id and body', async () => {
    answer = (hit, response) => respond(hits.length < 10 ? 500 : 200, {}, 'x'.repeat(10_000))(hit, response);
    const { id } = await endpoint();
    await mail();
    const waits = [5_000, 300_000, 1_800_000, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * 3_600_000)];
    for (const [index, wait] of waits.entries()) {
      await work(id);
      const { next_attempt_at: next, attempts } = await only(id);
      // From the start of the attempt, which may stall.
      const inMs = Date.parse(next ?? '') - Date.parse(attempts[index]?.at ?? '');
      assert.ok(inMs > wait * 0.9 - 1_000 && inMs < wait * 1.1 + 60_000, `try ${index + 2} in ${inMs} ms`);
      await hurry(id);
    }
    await work(id);
    const { status, attempts } = await only(id);
    assert.deepEqual([status, attempts.length], ['succeeded', 10]);
    assert.equal(attempts[0]?.response, 'x'.repeat(4_096));
    assert.equal(new Set(hits.map(({ body }) => body)).size, 1);
    assert.equal(new Set(hits.map(({ headers }) => headers['webhook-id'])).size, 1);
  });

  test('fails a delivery after the tenth attempt', async () => {
    answer = respond(503);
    const { id } = await endpoint();
    await mail();
    await pool.query('UPDATE webhook_deliveries SET tries = 9 WHERE endpoint_id = $1', [id]);
    assert.equal(await work(id), null);
    assert.deepEqual([(await only(id)).status, hits.length], ['failed', 1]);
  });

  test('a failed delivery waits for Retry-After', async () => {
    answer = respond(429, { 'retry-after': '600' });
    const { id } = await endpoint();
    await mail();
    assertRemaining(await work(id), 600_000);
  });

  test('410 disables the endpoint, and nothing more is sent', async () => {
    // Others are in flight meanwhile.
    answer = (hit, response) =>
      void setTimeout(() => respond(hits[0] === hit ? 410 : 200)(hit, response), hits[0] === hit ? 0 : 20);
    const { id } = await endpoint();
    await mail(500);
    await work(id);
    const disabled = await findEndpoint(pool, orgId, id);
    assert.deepEqual([disabled?.status, disabled?.disabled_reason], ['disabled', 'it answered 410 Gone']);
    assert.ok(hits.length <= 64, `${hits.length}`);
    await mail();
    assert.equal((await deliveries(id)).length, 500, 'a disabled endpoint gets no deliveries');
  });

  test('410 does not disable an endpoint whose URL has changed', async () => {
    const { id } = await endpoint();
    answer = (hit, response) =>
      void editEndpoint(intake, orgId, id, { url: `${base}/new` }).then(() => respond(410)(hit, response));
    await mail();
    await work(id);
    assert.equal((await state(id))?.status, 'enabled');
  });

  test('5 days of failures disable it; less, a first attempt or a success do not', async () => {
    answer = respond(500);
    const { id } = await endpoint();
    await mail();
    await work(id);
    assert.ok((await state(id))?.failing_since, 'the first failure is recorded');
    const failSince = (hours: number) =>
      pool.query(`UPDATE webhook_endpoints SET failing_since = now() - make_interval(hours => $2) WHERE id = $1`, [
        id,
        hours,
      ]);
    for (const [hours, isRetried, status] of [
      [119, true, 'enabled'],
      [121, false, 'enabled'],
      [121, true, 'disabled'],
    ] as const) {
      await failSince(hours);
      await (isRetried ? hurry(id) : mail());
      await work(id);
      assert.equal((await state(id))?.status, status, `${hours} hours`);
    }
    assert.equal((await state(id))?.disabled_reason, 'all attempts of 5 days have failed');

    await editEndpoint(intake, orgId, id, { status: 'enabled' });
    const enabled = await state(id);
    assert.deepEqual([enabled?.status, enabled?.disabled_reason, enabled?.failing_since], ['enabled', null, null]);
    await failSince(1);
    answer = respond(200);
    await hurry(id);
    await work(id);
    assert.equal((await state(id))?.failing_since, null, 'a success ends it');
  });

  test('signs with the secret before two rotations for a day, as with the new one', async () => {
    answer = respond(200);
    const { id, secret: old } = await endpoint();
    await rotateEndpoint(intake, orgId, id);
    const { secret } = await rotateEndpoint(intake, orgId, id);
    const pass = (minutes: number) =>
      pool.query('UPDATE webhook_endpoints SET older_until = older_until - make_interval(mins => $1)', [minutes]);
    await pass(23 * 60 + 55);
    await mail();
    await work(id);
    const [{ body, headers } = { body: '', headers: {} }] = hits;
    for (const each of [old, secret]) assert.ok(new Webhook(each).verify(body, headers as Record<string, string>));
    await pass(5);
    await mail();
    await work(id);
    const last = hits.at(-1);
    assert.ok(new Webhook(secret).verify(last?.body ?? '', last?.headers as Record<string, string>));
    assert.throws(() => new Webhook(old).verify(last?.body ?? '', last?.headers as Record<string, string>));
  });

  test('an endpoint that is moved, disabled or deleted meanwhile gets nothing at its old URL', async () => {
    answer = (hit, response) => setTimeout(() => respond(200)(hit, response), 100);
    const { id } = await endpoint();
    await mail(300);
    const working = work(id);
    await eventually('it is served', () => hits.length >= 20);
    await editEndpoint(intake, orgId, id, { url: `${base}/moved` });
    await eventually('it is served elsewhere', () => hits.some(({ path }) => path === '/moved'));
    const countOld = () => hits.filter(({ path }) => path === '/hook').length;
    const before = countOld();
    await editEndpoint(intake, orgId, id, { status: 'disabled' });
    await working;
    assert.ok(countOld() <= before + MAX_IN_FLIGHT, 'only what was in flight arrives where it was');
    assert.ok(hits.length < 300);
    await removeEndpoint(intake, orgId, id);
    const count = hits.length;
    await work(id);
    assert.equal(hits.length, count);
  });

  test('a replay is a new delivery of the same body, which the result of the old one does not end', async () => {
    answer = respond(200);
    const { id } = await endpoint();
    await mail();
    await work(id);
    const { id: delivery } = await only(id);
    assert.equal((await replayOne(intake, orgId, id, delivery)).status, 'pending');
    answer = (hit, response) => {
      // While it is under way for the second time, it is replayed once more.
      void replayOne(intake, orgId, id, delivery).then(() => respond(200)(hit, response));
      answer = respond(200);
    };
    await pool.query('UPDATE webhook_deliveries SET tries = 3 WHERE id = $1', [delivery]);
    await work(id);
    assert.equal(hits.length, 3);
    assert.equal(new Set(hits.map(({ body }) => body)).size, 1);
    const { status, attempts } = await only(id);
    assert.deepEqual([status, attempts.length], ['succeeded', 3]);
  });

  test('an endpoint that hangs has 32 requests in flight, which time out', async () => {
    answer = () => undefined;
    const { id } = await endpoint();
    await mail(100);
    const stopping = new AbortController();
    const connectToEndpoint = makePublicPost({ allowedCidrs: [ADDRESS] }, 1_000);
    const working = work(id, { stopping: stopping.signal, connectToEndpoint });
    await eventually('many are in flight', () => hits.length === 32);
    await sleep(300);
    assert.equal(hits.length, 32);
    stopping.abort();
    await working;
    const { rows } = await pool.query<{ error: string }>(
      `SELECT DISTINCT error FROM webhook_attempts JOIN webhook_deliveries AS delivery ON delivery.id = delivery_id WHERE endpoint_id = $1`,
      [id],
    );
    assert.deepEqual(rows, [{ error: 'it takes longer than 1 seconds' }]);
  });

  test('an endpoint that only fails is tried less often', async () => {
    answer = respond(500);
    const { id } = await endpoint();
    await mail(500);
    const stopping = new AbortController();
    const [startedAt, working] = [performance.now(), work(id, { stopping: stopping.signal })];
    await eventually('it is tried', () => hits.length >= 30);
    await sleep(1_000);
    stopping.abort();
    await working;
    const rate = (performance.now() - startedAt) / 50;
    assert.ok(hits.length <= 20 + 32 + rate, `${hits.length} attempts; 20 fail while 32 are in flight`);
  });

  test('an endpoint of another SECRET_KEY throws without an attempt', async () => {
    answer = respond(200);
    const { id } = await endpoint();
    await mail();
    await assert.rejects(work(id, { seal: webhookSeal('another secret key, long enough as well') }));
    assert.deepEqual([hits.length, (await only(id)).attempts.length], [0, 0]);
  });
});
