import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { type Answer, assertRefused, bodyOf, type Organization, useService } from './service.ts';

interface Logged {
  id: string;
  method: string;
  path: string | null;
  status: number;
  error_code: string | null;
  key_id: string | null;
  duration_ms: number;
  created_at: string;
}
interface Page {
  requests: Logged[];
  has_more: boolean;
  next_cursor: string | null;
}

/** The log of API requests. Paging through a long log is tested in test/store/api-requests.test.ts. */
const service = await useService({ logsRequests: true });
const [ours, theirs] = [await service.organization(), await service.organization()];
const keyId = (key: string) => `key_${key.split('_')[2]}`;
const idOf = ({ headers }: Answer) => String(headers['x-request-id']);

async function list(query = '', by: Organization = ours): Promise<Logged[]> {
  return bodyOf<Page>(await by.call('GET', `/v1/requests${query}`), 200).requests;
}

/** Waits until an answer is in the log. */
async function logged(answer: Answer, by: Organization = ours): Promise<Logged> {
  let found: Logged[] = [];
  await eventually('the request is in the log', async () => {
    found = await list(`?request_id=${idOf(answer)}`, by);
    return found.length > 0;
  });
  return found[0] as Logged;
}

describe('GET /v1/requests', () => {
  it('shows when a request was made, by which key, with which result and how long it took', async () => {
    const before = Date.now();
    const answer = await ours.send();
    const { id, duration_ms: duration, created_at: createdAt, ...rest } = await logged(answer);
    assert.equal(id, idOf(answer));
    assert.ok(Number.isInteger(duration) && duration >= 0, String(duration));
    assert.ok(Math.abs(Date.parse(createdAt) - before) < 60_000, createdAt);
    const request = { method: 'POST', path: '/v1/emails', status: 202, error_code: null };
    assert.deepEqual(rest, { ...request, key_id: keyId(ours.key) });
  });

  it('shows refused requests with their code: by validation, permission, path and method', async () => {
    const reading = await ours.addKey('read_only');
    const cases = [
      [await ours.send({ to: 'nobody' }), '/v1/emails', 422, 'validation_error'],
      [await service.call('POST', '/v1/emails', { key: reading, json: {} }), '/v1/emails', 403, 'insufficient_scope'],
      [await ours.call('GET', '/v1/emails/em_none'), '/v1/emails/:id', 404, 'not_found'],
      [await ours.call('GET', '/v1/nowhere'), null, 404, 'not_found'],
      [await ours.call('PUT', '/v1/emails'), null, 405, 'method_not_allowed'],
    ] as const;
    for (const [answer, path, status, code] of cases) {
      const entry = await logged(answer);
      assert.deepEqual([entry.path, entry.status, entry.error_code], [path, status, code]);
    }
  });

  it('contains no value of a path, a query or a body', async () => {
    const secret = 'canary@example.net';
    await ours.call('GET', `/v1/suppressions/${secret}`);
    await ours.call('GET', `/v1/suppressions?email=${secret}`);
    await ours.call('GET', `/v1/nowhere/${secret}`);
    await logged(await ours.send({ to: secret, subject: 'canary' }));
    const { rows } = await service.pool.query<{ line: string }>('SELECT api_requests::text AS line FROM api_requests');
    assert.ok(rows.length >= 4);
    assert.ok(!rows.some(({ line }) => line.includes('canary')), 'no canary in the table');
  });

  it('filters by status, class of statuses, path and key, and combines the filters', async () => {
    const key = await ours.addKey('full_access');
    const by = { key };
    await service.call('GET', '/v1/domains', by);
    await service.call('GET', '/v1/domains/dm_none', by);
    await logged(await service.call('POST', '/v1/emails', { ...by, json: {} }));
    const statuses = async (query: string) =>
      (await list(`?key=${keyId(key)}${query}`)).map(({ path, status }) => `${path} ${status}`);
    const [domains, domain, email] = ['/v1/domains 200', '/v1/domains/:id 404', '/v1/emails 422'];
    assert.deepEqual(await statuses(''), [email, domain, domains]);
    assert.deepEqual(await statuses('&status=4xx'), [email, domain]);
    assert.deepEqual(await statuses('&status=404'), [domain]);
    assert.deepEqual(await statuses('&status=2xx'), [domains]);
    assert.deepEqual(await statuses('&status=5xx'), []);
    assert.deepEqual(await statuses('&path=/v1/domains/:id'), [domain]);
    assert.deepEqual(await statuses('&path=/v1/emails&status=200'), []);
  });

  it('pages with cursors that belong to their filters', async () => {
    const key = await ours.addKey('full_access');
    for (let i = 0; i < 2; i++) await service.call('GET', '/v1/keys', { key });
    await logged(await service.call('GET', '/v1/keys', { key }));
    const query = `/v1/requests?key=${keyId(key)}`;
    const first = bodyOf<Page>(await ours.call('GET', `${query}&limit=2`), 200);
    assert.deepEqual([first.requests.length, first.has_more], [2, true]);
    const second = bodyOf<Page>(await ours.call('GET', `${query}&limit=2&cursor=${first.next_cursor}`), 200);
    assert.deepEqual([second.requests.length, second.has_more, second.next_cursor], [1, false, null]);
    const ids = [...first.requests, ...second.requests].map(({ id }) => id);
    assert.deepEqual(ids, ids.toSorted().toReversed());
    const foreign = await ours.call('GET', `/v1/requests?cursor=${first.next_cursor}`);
    assertRefused(foreign, 422, 'validation_error', 'cursor');
  });

  for (const [query, param] of [
    ['status=6xx', 'status'],
    ['status=20', 'status'],
    ['status=', 'status'],
    ['path=', 'path'],
    ['key=', 'key'],
    ['request_id=', 'request_id'],
    ['limit=0', 'limit'],
    ['method=GET', 'method'],
  ] as const) {
    it(`refuses ?${query}`, async () => {
      assertRefused(await ours.call('GET', `/v1/requests?${query}`), 422, 'validation_error', param);
    });
  }

  it('shows no request of another organization', async () => {
    const answer = await theirs.send();
    await logged(answer, theirs);
    assert.deepEqual(await list(`?request_id=${idOf(answer)}`), []);
    assert.deepEqual(await list(`?key=${keyId(theirs.key)}`), []);
    const all = await list('?limit=100');
    assert.ok(all.length > 0 && all.every(({ key_id: key }) => key !== keyId(theirs.key)));
  });

  it('requires full_access without a restriction to domains', async () => {
    for (const key of [
      await ours.addKey('read_only'),
      await ours.addKey('sending_access'),
      await ours.addKey('full_access', [ours.domain]),
    ]) {
      assertRefused(await service.call('GET', '/v1/requests', { key }), 403, 'insufficient_scope');
    }
  });

  it('has no entry for a request without a valid key', async () => {
    const answer = await service.call('GET', '/v1/emails', { key: `${ours.key.slice(0, -1)}x` });
    assert.equal(answer.status, 401);
    await logged(await ours.call('GET', '/v1/emails'));
    const { rows } = await service.pool.query('SELECT FROM api_requests WHERE id = $1', [idOf(answer)]);
    assert.equal(rows.length, 0);
  });
});
