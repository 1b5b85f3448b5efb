import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { makePool } from '../../src/store/postgres/pool.ts';
import { databaseProxy } from '../store/proxy.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, assertRefused, inFuture, useService } from './service.ts';

/** Owns the database and reaches it without the proxy. */
const direct = await useService();
const ours = await direct.organization();
const id = await ours.sent({ scheduled_at: inFuture({ hours: 3 }) });
const proxy = await databaseProxy(direct.databaseUrl);
const pool = makePool(proxy.url, 'outage', 5, () => undefined);
const service = await useService({ pool });
after(async () => {
  await pool.end();
  await proxy.close();
});
/** Breaks all connections and forwards new ones, in any state of the proxy. */
async function recover(): Promise<void> {
  await proxy.close();
  await proxy.open();
}
/** Breaks all connections and accepts new ones without an answer, so that they fail after five seconds. */
async function stopAnswers(): Promise<void> {
  await recover();
  await eventually('the pool has no connection', () => pool.totalCount === 0);
  proxy.silence();
}

/** Requests /readyz after its cached result has expired. */
async function readiness(): Promise<Answer> {
  await sleep(1_100);
  return service.call('GET', '/readyz');
}
const call = (method: string, path: string, json?: object) =>
  service.call(method, path, { key: ours.key, ...(json && { json }) });
const send = (fields = {}) => call('POST', '/v1/emails', ours.mail(fields));
const assertUnavailable = (answer: Answer) =>
  assertRefused(answer, 503, 'unavailable', undefined, 'the service cannot reach its database');

describe('503 unavailable: database unreachable', () => {
  for (const [what, breakConnections, request] of [
    ['a send', proxy.close, send],
    ['a read', proxy.close, () => call('GET', `/v1/emails/${id}`)],
    ['a reschedule', proxy.close, () => call('PATCH', `/v1/emails/${id}`, { scheduled_at: inFuture({ hours: 1 }) })],
    ['a readiness check', proxy.close, readiness],
    ['a send', stopAnswers, send],
    ['a readiness check', stopAnswers, readiness],
  ] as const) {
    const how = breakConnections === stopAnswers ? 'does not answer' : 'refuses connections';
    it(`is returned with Retry-After to ${what} while Postgres ${how}, which works afterwards`, async () => {
      assert.ok((await request()).status < 500);
      await breakConnections();
      const answer = await request();
      await recover();
      assertUnavailable(answer);
      assert.ok(Number(answer.headers['retry-after']) >= 1);
      assert.ok((await request()).status < 500);
    });
  }

  it('is returned to a known key once it can no longer be looked up', async () => {
    const ask = () => call('GET', '/v1/nothing');
    assertRefused(await ask(), 404, 'not_found');
    await proxy.close();
    const answer = await eventually('the key is looked up', async () => {
      const got = await ask();
      return got.status !== 404 && got;
    });
    assertUnavailable(answer);
    await proxy.open();
    await eventually('the key is accepted again', async () => (await ask()).status === 404);
  });

  it('does not concern /healthz, the API description and requests without a key', async () => {
    await proxy.close();
    assert.equal((await service.call('GET', '/healthz')).status, 200);
    assert.equal((await service.call('GET', '/openapi.json')).status, 200);
    assertRefused(await service.call('GET', '/v1/nothing'), 401, 'unauthorized');
    await proxy.open();
  });

  it('is never followed by a false 202: every accepted email is stored once while connections break', async () => {
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
    // Awaited below; until then a failure must not end the test while the proxy is closed.
    sent.catch(() => (ended = true));
    const hasEnded = () => ended;
    for (let i = 0; (i < 10 || accepted.length <= 10) && !hasEnded(); i++) {
      await sleep(60);
      await proxy.close();
      await sleep(20);
      await proxy.open();
    }
    ended = true;
    await sent;
    const { rows } = await direct.pool.query<{ id: string }>(
      'SELECT id FROM emails JOIN email_bodies ON email_id = id',
    );
    const stored = new Set(rows.map((row) => row.id));
    assert.deepEqual(
      accepted.filter((each) => !stored.has(each)),
      [],
    );
  });
});

it('readiness requires the schema of this version', async () => {
  const lacksMigrations = async () =>
    assertRefused(await readiness(), 503, 'unavailable', undefined, 'the database lacks migrations');
  await direct.pool.query('ALTER TABLE migrations RENAME TO hidden');
  await lacksMigrations();
  await direct.pool.query('CREATE TABLE migrations (name text)');
  await lacksMigrations();
  await direct.pool.query('DROP TABLE migrations; ALTER TABLE hidden RENAME TO migrations');
  const { status, body } = await readiness();
  assert.deepEqual([status, body], [200, { status: 'ok' }]);
});

it('500 internal_error contains no details, and nothing is stored', async () => {
  await direct.pool.query(`ALTER TABLE email_bodies ADD CONSTRAINT unlucky CHECK (body_bytes <> 7)`);
  const [before, failed, later] = [await send(), await send({ subject: 'unlucky', text: 'unlucky' }), await send()];
  assertRefused(failed, 500, 'internal_error', undefined, 'something went wrong on our side');
  assert.deepEqual([before.status, later.status], [202, 202]);
  const { rows } = await direct.pool.query(`SELECT FROM emails WHERE subject = 'unlucky'`);
  assert.equal(rows.length, 0);
});
