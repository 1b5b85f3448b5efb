import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { EVENT_TYPES } from '../../src/domain/event-types.ts';
import { REACHABLE } from '../public-fetch/web.ts';
import { type Answer, assertRefused, TIMESTAMP, useService } from './service.ts';

type Json = Record<string, unknown>;
const URL_ = 'https://example.com/hook';
const ABSENT = `wh_${'0'.repeat(26)}`;
const NO_DELIVERY = `whd_${'0'.repeat(26)}`;

const service = await useService();
const ours = await service.organization();

// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the test knows what it is given
const body = <T = Json>(answer: Answer, status: number): T => {
  assert.equal(answer.status, status, answer.text);
  return answer.body as T;
};
const make = async (fields: Json = {}, by = ours) =>
  body<Json & { id: string; secret: string }>(
    await by.call('POST', '/v1/webhooks', { json: { url: URL_, ...fields } }),
    201,
  );

async function deliveries(id: string, query = ''): Promise<(Json & { id: string; type: string })[]> {
  const answer = await ours.call('GET', `/v1/webhooks/${id}/deliveries${query}`);
  return body<{ deliveries: (Json & { id: string; type: string })[] }>(answer, 200).deliveries;
}

describe('POST /v1/webhooks', () => {
  it('makes an endpoint and shows its secret once', async () => {
    const { id, secret, created_at, ...rest } = await make({
      events: ['email.sent', 'email.sent'],
      description: 'mine',
    });
    assert.match(id, /^wh_[0-9a-z]{26}$/);
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.match(String(created_at), TIMESTAMP);
    const shown = {
      url: URL_,
      description: 'mine',
      events: ['email.sent'],
      status: 'enabled',
      disabled_reason: null,
      disabled_at: null,
      failing_since: null,
    };
    assert.deepEqual(rest, shown);
    const got = await ours.call('GET', `/v1/webhooks/${id}`);
    assert.deepEqual(body(got, 200), { id, created_at, ...shown });
    const { rows } = await service.pool.query<{ secret: Buffer }>(
      'SELECT secret FROM webhook_endpoints WHERE id = $1',
      [id],
    );
    assert.ok(!rows[0]?.secret.includes(Buffer.from(secret.slice(6), 'base64')), 'it is sealed where it is kept');
  });

  it('takes what may be left out as null, every type, and http where the operator allows it', async () => {
    const made = await make({ events: null, description: null });
    assert.deepEqual([made['events'], made['description']], [[], null]);
    assert.deepEqual((await make({ events: EVENT_TYPES }))['events'], EVENT_TYPES);
    assert.equal((await make({ url: `http://${REACHABLE}:4000/x` }))['url'], `http://${REACHABLE}:4000/x`);
    assert.equal((await make({ url: `https://example.com/${'x'.repeat(1_980)}` }))['status'], 'enabled');
  });

  for (const [json, param] of [
    [{}, 'url'],
    [{ url: '' }, 'url'],
    [{ url: null }, 'url'],
    [{ url: 5 }, 'url'],
    [{ url: 'nope' }, 'url'],
    [{ url: '/hook' }, 'url'],
    [{ url: 'ftp://example.com/' }, 'url'],
    [{ url: 'javascript:alert(1)' }, 'url'],
    [{ url: 'http://8.8.8.8/' }, 'url'],
    [{ url: 'https://user:password@example.com/' }, 'url'],
    [{ url: 'https://localhost/' }, 'url'],
    [{ url: 'https://10.0.0.1/' }, 'url'],
    [{ url: 'https://[fd00::1]/' }, 'url'],
    [{ url: 'http://127.0.0.1/' }, 'url'],
    [{ url: `https://example.com/${'x'.repeat(1_981)}` }, 'url'],
    [{ url: URL_, events: ['email.exploded'] }, 'events.0'],
    [{ url: URL_, events: ['email.sent', 'email'] }, 'events.1'],
    [{ url: URL_, events: 'email.sent' }, 'events'],
    [{ url: URL_, description: 5 }, 'description'],
    [{ url: URL_, description: 'a\nb' }, 'description'],
    [{ url: URL_, description: 'x'.repeat(501) }, 'description'],
    [{ url: URL_, secret: 'whsec_x' }, 'secret'],
    [{ url: URL_, status: 'enabled' }, 'status'],
  ] as const) {
    it(`422 at ${param}: ${JSON.stringify(json).slice(0, 80)}`, async () => {
      assertRefused(await ours.call('POST', '/v1/webhooks', { json }), 422, 'validation_error', param);
    });
  }
});

describe('GET /v1/webhooks', () => {
  it('lists newest first, in pages, without secrets', async () => {
    const theirs = await service.organization();
    const made = [];
    for (let i = 0; i < 5; i++) made.unshift((await make({}, theirs)).id);
    const seen: unknown[] = [];
    let query = '?limit=2';
    for (let pages = 1; ; pages++) {
      const answer = await theirs.call('GET', `/v1/webhooks${query}`);
      const page = body<{ webhooks: Json[]; has_more: boolean; next_cursor: string | null }>(answer, 200);
      assert.ok(!answer.text.includes('secret'));
      seen.push(...page.webhooks.map(({ id }) => id));
      assert.equal(page.has_more, page.next_cursor !== null);
      if (page.next_cursor === null) {
        assert.equal(pages, 3);
        break;
      }
      query = `?limit=2&cursor=${page.next_cursor}`;
      assertRefused(await ours.call('GET', `/v1/webhooks${query}`), 422, 'validation_error', 'cursor');
    }
    assert.deepEqual(seen, made);
  });
});

describe('PATCH /v1/webhooks/:id', () => {
  it('changes what is given and nothing else', async () => {
    const { id, secret, ...before } = await make({ events: ['email.sent'], description: 'mine' });
    assert.ok(secret);
    const patch = async (json: Json) => body(await ours.call('PATCH', `/v1/webhooks/${id}`, { json }), 200);
    assert.deepEqual(await patch({}), { id, ...before });
    assert.deepEqual(await patch({ url: null, events: null, description: null, status: null }), { id, ...before });
    const url = 'https://example.com/other';
    assert.deepEqual(await patch({ url }), { id, ...before, url });
    assert.deepEqual(await patch({ events: [] }), { id, ...before, url, events: [] });
    assert.deepEqual(await patch({ description: '' }), { id, ...before, url, events: [], description: null });
  });

  it('disables and enables, and tells the relay', async () => {
    const { id } = await make();
    const told = async () =>
      (await service.pool.query(`DELETE FROM outbox WHERE message_id = $1 AND action = 'webhook' RETURNING id`, [id]))
        .rowCount;
    const wakes = service.wakes();
    const patch = async (status: string) =>
      body(await ours.call('PATCH', `/v1/webhooks/${id}`, { json: { status } }), 200)['status'];
    assert.deepEqual([await patch('disabled'), await told()], ['disabled', 1]);
    await ours.sent();
    assert.equal((await deliveries(id)).length, 0, 'nothing is written for it');
    assert.deepEqual([await patch('enabled'), await told()], ['enabled', 1]);
    await ours.sent();
    assert.equal((await deliveries(id)).length, 1);
    assert.ok(service.wakes() >= wakes + 4);
  });

  for (const [json, param] of [
    [{ status: 'paused' }, 'status'],
    [{ url: 'https://127.0.0.1/' }, 'url'],
    [{ url: 'http://8.8.8.8/' }, 'url'],
    [{ events: ['nope'] }, 'events.0'],
    [{ secret: 'x' }, 'secret'],
  ] as const) {
    it(`422 at ${param}: ${JSON.stringify(json)}`, async () => {
      const { id } = await make();
      assertRefused(await ours.call('PATCH', `/v1/webhooks/${id}`, { json }), 422, 'validation_error', param);
    });
  }
});

describe('POST /v1/webhooks/:id/rotate-secret and DELETE /v1/webhooks/:id', () => {
  it('gives another secret, shown once', async () => {
    const { id, secret } = await make();
    const rotated = body(await ours.call('POST', `/v1/webhooks/${id}/rotate-secret`), 200);
    assert.match(String(rotated['secret']), /^whsec_/);
    assert.notEqual(rotated['secret'], secret);
    assert.equal(rotated['id'], id);
  });

  it('204, and then it is gone', async () => {
    const { id } = await make();
    const answer = await ours.call('DELETE', `/v1/webhooks/${id}`);
    assert.deepEqual([answer.status, answer.text], [204, '']);
    for (const method of ['GET', 'DELETE']) {
      assertRefused(await ours.call(method, `/v1/webhooks/${id}`), 404, 'not_found');
    }
    await ours.sent();
  });
});

describe('deliveries', () => {
  it('one for each event that the endpoint wants', async () => {
    const wanted = await make({ events: ['email.scheduled', 'email.canceled'] });
    const every = await make();
    const id = await ours.sent({ scheduled_at: new Date(Date.now() + 3_600_000).toISOString() });
    await ours.call('POST', `/v1/emails/${id}/cancel`);
    await ours.sent();
    assert.deepEqual(
      (await deliveries(wanted.id)).map(({ type }) => type),
      ['email.canceled', 'email.scheduled'],
    );
    assert.deepEqual(
      (await deliveries(every.id)).map(({ type }) => type),
      ['email.queued', 'email.canceled', 'email.scheduled'],
    );
  });

  it('are listed newest first, by status, in pages bound to the endpoint and the status', async () => {
    const { id } = await make({ events: ['email.queued'] });
    const other = await make();
    for (let i = 0; i < 5; i++) await ours.sent();
    const all = await deliveries(id);
    assert.deepEqual(Object.keys(all[0] ?? {}), ['id', 'event_id', 'type', 'status', 'created_at', 'next_attempt_at']);
    assert.match(all[0]?.id ?? '', /^whd_[0-9a-z]{26}$/);
    assert.deepEqual(await deliveries(id, '?status=pending'), all);
    assert.deepEqual(await deliveries(id, '?status=failed'), []);
    const first = await ours.call('GET', `/v1/webhooks/${id}/deliveries?limit=3`);
    const page = body<{ deliveries: Json[]; has_more: boolean; next_cursor: string }>(first, 200);
    assert.equal(page.has_more, true);
    assert.deepEqual([...page.deliveries, ...(await deliveries(id, `?cursor=${page.next_cursor}`))], all);
    for (const path of [`${other.id}/deliveries?`, `${id}/deliveries?status=pending&`]) {
      const answer = await ours.call('GET', `/v1/webhooks/${path}cursor=${page.next_cursor}`);
      assertRefused(answer, 422, 'validation_error', 'cursor');
    }
    assertRefused(await ours.call('GET', `/v1/webhooks/${id}/deliveries?status=x`), 422, 'validation_error', 'status');
    assertRefused(await ours.call('GET', `/v1/webhooks/${id}/deliveries?limit=101`), 422, 'validation_error', 'limit');
  });

  it('one is shown with what will be posted and its tries', async () => {
    const { id } = await make();
    const email = await ours.sent({ subject: 'Hello' });
    const [delivery] = await deliveries(id);
    const shown = body(await ours.call('GET', `/v1/webhooks/${id}/deliveries/${delivery?.id}`), 200);
    const { payload, attempts, ...rest } = shown as Json & { payload: { data: Json } };
    assert.deepEqual(rest, delivery);
    assert.deepEqual(attempts, []);
    assert.deepEqual([payload.data['emailId'], payload.data['subject']], [email, 'Hello']);
    await service.pool.query(
      `INSERT INTO webhook_attempts (delivery_id, at, status_code, duration_ms, response, error)
       VALUES ($1, now(), NULL, 15000, NULL, 'it takes longer than 15 seconds'), ($1, now() - interval '5 s', 500, 12, 'no', NULL)`,
      [delivery?.id],
    );
    const again = body<{ attempts: Json[] }>(
      await ours.call('GET', `/v1/webhooks/${id}/deliveries/${delivery?.id}`),
      200,
    );
    assert.deepEqual(
      again.attempts.map(({ status_code, duration_ms, response, error }) => [
        status_code,
        duration_ms,
        response,
        error,
      ]),
      [
        [500, 12, 'no', null],
        [null, 15_000, null, 'it takes longer than 15 seconds'],
      ],
    );
  });

  it('POST /:id/test goes to that endpoint alone, whatever it wants', async () => {
    const { id } = await make({ events: ['email.bounced'] });
    const other = await make();
    const made = body(await ours.call('POST', `/v1/webhooks/${id}/test`), 202);
    assert.deepEqual([made['type'], made['status']], ['webhook.test', 'pending']);
    assert.deepEqual(await deliveries(id), [made]);
    assert.deepEqual(await deliveries(other.id), []);
  });
});

describe('replay', () => {
  /** An endpoint with deliveries of these statuses, an hour apart, the last of them now. */
  async function withDeliveries(...statuses: string[]): Promise<{ id: string; all: string[] }> {
    const { id } = await make({ events: ['email.queued'] });
    for (let i = 0; i < statuses.length; i++) await ours.sent();
    const all = (await deliveries(id)).map((delivery) => delivery.id).reverse();
    for (const [index, status] of statuses.entries()) {
      await service.pool.query(
        `UPDATE webhook_deliveries SET status = $2, tries = 3, created_at = now() - make_interval(hours => $3),
           next_attempt_at = CASE WHEN $2 = 'pending' THEN now() + interval '1 hour' END
         WHERE id = $1`,
        [all[index], status, statuses.length - 1 - index],
      );
    }
    await service.pool.query(`DELETE FROM outbox`);
    return { id, all };
  }
  const due = async (id: string): Promise<string[]> => {
    const { rows } = await service.pool.query<{ id: string }>(
      `SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 AND status = 'pending' AND tries = 0 AND next_attempt_at <= now()
       ORDER BY created_at`,
      [id],
    );
    return rows.map((row) => row.id);
  };
  const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();

  it('of one begins it anew and wakes the endpoint', async () => {
    const { id, all } = await withDeliveries('failed', 'succeeded');
    const answer = await ours.call('POST', `/v1/webhooks/${id}/deliveries/${all[0]}/replay`);
    assert.equal(body(answer, 202)['status'], 'pending');
    assert.deepEqual(await due(id), [all[0]]);
    const { rowCount } = await service.pool.query(`SELECT FROM outbox WHERE message_id = $1 AND action = 'webhook'`, [
      id,
    ]);
    assert.equal(rowCount, 1);
  });

  it('of a period takes all of it, or those of one status', async () => {
    const { id, all } = await withDeliveries('failed', 'succeeded', 'pending', 'failed');
    const replay = async (json: Json) =>
      body<{ replayed: number }>(await ours.call('POST', `/v1/webhooks/${id}/replay`, { json }), 202).replayed;
    assert.equal(await replay({ since: hoursAgo(2.5), until: hoursAgo(0.5), status: 'failed' }), 0);
    assert.equal(await replay({ since: hoursAgo(2.5), until: hoursAgo(0.5) }), 2);
    assert.deepEqual(await due(id), [all[1], all[2]]);
    assert.equal(await replay({ since: hoursAgo(9), status: 'failed' }), 2);
    assert.deepEqual(await due(id), all);
    assert.equal(await replay({ since: hoursAgo(9), until: null, status: null }), 4);
  });

  for (const [json, param] of [
    [{}, 'since'],
    [{ since: 'yesterday' }, 'since'],
    [{ since: '2026-03-01T00:00:00Z', until: '2026-02-01T00:00:00Z' }, 'until'],
    [{ since: '2026-03-01T00:00:00Z', until: 5 }, 'until'],
    [{ since: '2026-03-01T00:00:00Z', status: 'x' }, 'status'],
    [{ since: '2026-03-01T00:00:00Z', x: 1 }, 'x'],
  ] as const) {
    it(`422 at ${param}: ${JSON.stringify(json)}`, async () => {
      const { id } = await make();
      assertRefused(await ours.call('POST', `/v1/webhooks/${id}/replay`, { json }), 422, 'validation_error', param);
    });
  }

  it('and test are refused while the endpoint is disabled', async () => {
    const { id, all } = await withDeliveries('failed');
    await ours.call('PATCH', `/v1/webhooks/${id}`, { json: { status: 'disabled' } });
    for (const path of ['test', `deliveries/${all[0]}/replay`]) {
      assertRefused(await ours.call('POST', `/v1/webhooks/${id}/${path}`), 409, 'conflict');
    }
    const answer = await ours.call('POST', `/v1/webhooks/${id}/replay`, { json: { since: hoursAgo(1) } });
    assertRefused(answer, 409, 'conflict');
  });
});

describe('who may', () => {
  const READS = ['', '/deliveries', `/deliveries/${NO_DELIVERY}`].map((path) => ['GET', path] as const);
  const WRITES = [
    ['PATCH', ''],
    ['DELETE', ''],
    ['POST', '/rotate-secret'],
    ['POST', '/test'],
    ['POST', '/replay'],
    ['POST', `/deliveries/${NO_DELIVERY}/replay`],
  ] as const;
  const json = (method: string, path: string) => {
    if (path === '/replay') return { json: { since: '2026-03-01T00:00:00Z' } };
    return method === 'PATCH' ? { json: {} } : {};
  };

  it('another organization’s endpoint and one that does not exist look the same', async () => {
    const { id } = await make();
    const theirs = await service.organization();
    for (const [method, path] of [...READS, ...WRITES]) {
      for (const each of [id, ABSENT]) {
        const answer = await theirs.call(method, `/v1/webhooks/${each}${path}`, json(method, path));
        assertRefused(answer, 404, 'not_found', undefined, 'there is no webhook endpoint');
      }
    }
    const other = await make();
    await ours.sent();
    const [delivery] = await deliveries(other.id);
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/replay'],
    ] as const) {
      assertRefused(await ours.call(method, `/v1/webhooks/${id}/deliveries/${delivery?.id}${path}`), 404, 'not_found');
    }
  });

  it('read_only reads, sending_access does nothing, and only full_access writes', async () => {
    const { id } = await make();
    const [readOnly, sending] = [await ours.addKey('read_only'), await ours.addKey('sending_access')];
    const ask = (key: string, method: string, path: string) =>
      service.call(method, `/v1/webhooks/${id}${path}`, { key, ...json(method, path) });
    for (const [method, path] of READS) {
      assert.ok([200, 404].includes((await ask(readOnly, method, path)).status));
      assertRefused(await ask(sending, method, path), 403, 'insufficient_scope');
    }
    for (const key of [readOnly, sending]) {
      for (const [method, path] of WRITES) assertRefused(await ask(key, method, path), 403, 'insufficient_scope');
      assertRefused(
        await service.call('POST', '/v1/webhooks', { key, json: { url: URL_ } }),
        403,
        'insufficient_scope',
      );
    }
  });
});
