import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { project } from '../../src/projection/emails.ts';
import { assertRefused, inFuture, type Organization, type Service, startService, TIMESTAMP } from './service.ts';

let service: Service;
let ours: Organization;
let theirs: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
  theirs = await service.organization();
});
after(() => service.close());

const ABSENT = `em_${'0'.repeat(26)}`;
const later = (hours = 3) => inFuture({ hours });
const scheduled = () => ours.sent({ scheduled_at: later() });
const patch = (id: string, json: unknown) => ours.call('PATCH', `/v1/emails/${id}`, { json });
const cancel = (id: string) => ours.call('POST', `/v1/emails/${id}/cancel`);
const types = (email: Record<string, unknown>) => (email['events'] as { type: string }[]).map(({ type }) => type);
const outbox = async (id: string) => {
  const { rows } = await service.pool.query<{ action: string }>(
    'SELECT action FROM outbox WHERE message_id = $1 ORDER BY id',
    [id],
  );
  return rows.map(({ action }) => action);
};

/** An email that a worker and a provider have had in hand. */
async function moved(...changes: Exclude<Parameters<typeof project>[1], 'failed' | 'bounced'>[]): Promise<string> {
  const id = await ours.sent(changes[0] === 'canceled' ? { scheduled_at: later() } : {});
  for (const change of changes) await project(service.pool, change, [{ id }]);
  return id;
}

describe('GET /v1/emails/:id', () => {
  it('holds exactly the fields of the interface, in its order', async () => {
    const { status, headers, body } = await ours.call('GET', `/v1/emails/${await ours.sent()}`);
    assert.equal(status, 200);
    assert.equal(headers['content-type'], 'application/json; charset=utf-8');
    assert.deepEqual(Object.keys(body as object), [
      ...['id', 'batch_id', 'from', 'to', 'cc', 'bcc', 'reply_to', 'subject', 'marketing', 'tags', 'headers'],
      ...['status', 'error', 'bounce_reason', 'created_at', 'scheduled_at', 'last_event_at', 'events', 'attachments'],
    ]);
  });

  it('has email.queued at creation, so last_event_at is never null', async () => {
    const { body } = await ours.send();
    const { id, created_at: createdAt } = body as { id: string; created_at: string };
    const email = await ours.email(id);
    assert.deepEqual(
      [email['created_at'], email['last_event_at'], email['events']],
      [createdAt, createdAt, [{ type: 'email.queued', created_at: createdAt }]],
    );
    assert.deepEqual([email['status'], email['scheduled_at'], email['batch_id']], ['queued', null, null]);
  });

  it('has the full event timeline, oldest first, and the time of the latest event', async () => {
    const id = await moved('sent', 'delivery_delayed', 'delivered', 'opened', 'clicked', 'complained');
    const email = await ours.email(id);
    assert.deepEqual(types(email), [
      ...['email.queued', 'email.sent', 'email.delivery_delayed', 'email.delivered'],
      ...['email.opened', 'email.clicked', 'email.complained'],
    ]);
    const times = (email['events'] as { created_at: string }[]).map((event) => event.created_at);
    for (const time of times) assert.match(time, TIMESTAMP);
    assert.deepEqual(times, [...times].sort());
    assert.equal(email['last_event_at'], times.at(-1));
    assert.equal(email['status'], 'complained');
  });

  it('tells error and bounce_reason of a bounce, and the error of a failure', async () => {
    const [bounced, failed] = await Promise.all([ours.sent(), ours.sent()]);
    const error = 'the server said: 550 5.1.1 "no such user"';
    await project(service.pool, 'bounced', [{ id: bounced, error, bounce_reason: 'mailbox_not_found' }]);
    await project(service.pool, 'failed', [{ id: failed, error: 'no provider took it' }]);
    const tell = async (id: string) => {
      const { status, error: sentence, bounce_reason: reason } = await ours.email(id);
      return { status, sentence, reason };
    };
    assert.deepEqual(await tell(bounced), { status: 'bounced', sentence: error, reason: 'mailbox_not_found' });
    assert.deepEqual(await tell(failed), { status: 'failed', sentence: 'no provider took it', reason: null });
  });

  it('is answered without its body to HEAD', async () => {
    const id = await ours.sent();
    const answer = await ours.call('HEAD', `/v1/emails/${id}`);
    assert.equal(answer.status, 200);
    assert.equal(answer.text, '');
    const { text } = await ours.call('GET', `/v1/emails/${id}`);
    assert.equal(answer.headers['content-length'], String(Buffer.byteLength(text)));
    assert.equal((await ours.call('HEAD', `/v1/emails/${ABSENT}`)).status, 404);
  });
});

describe('no email with this id on the account: 404, whoever has it', () => {
  const requests: readonly (readonly [string, string, object?])[] = [
    ['GET', ''],
    ['PATCH', '', { json: { scheduled_at: later() } }],
    ['POST', '/cancel'],
  ];
  for (const [method, suffix, call] of requests) {
    it(`${method} /v1/emails/:id${suffix} says the same of another organization's id as of one that is not`, async () => {
      const ids = [await theirs.sent({ scheduled_at: later() }), await theirs.sent(), ABSENT];
      const answers = await Promise.all(ids.map((id) => ours.call(method, `/v1/emails/${id}${suffix}`, call)));
      for (const answer of answers) assertRefused(answer, 404, 'not_found');
      const bodies = answers.map(({ text }) => text.replace(/req_[0-9a-z]+/, ''));
      assert.deepEqual(new Set(bodies).size, 1, bodies.join('\n'));
      const untouched = await theirs.email(ids[0] as string);
      assert.deepEqual([untouched['status'], types(untouched)], ['scheduled', ['email.scheduled']]);
    });

    it(`${method} /v1/emails/:id${suffix} with an id of an odd shape`, async () => {
      const id = await scheduled();
      for (const odd of [
        ...['em_', 'em', 'x', 'null', 'undefined', '0', '-1', '*', '%25', '%20', "'%20OR%201=1--", '%22%3E%3C'],
        ...['%F0%9F%98%80', '%00', 'em_%00', `${id}%00`, '%ZZ', '%', '%E2%82', '%ED%A0%80', '%2F', '..%2F..%2Fetc'],
        ...[id.toUpperCase(), `${id}%20`, `%20${id}`, `${id}x`, id.slice(0, -1), id.replace('em_', 'bt_'), id.slice(3)],
        ...['x'.repeat(100), 'x'.repeat(101), 'x'.repeat(10_000), `${id};a=1`, `${id}%3Fx`, '__proto__', 'constructor'],
      ]) {
        assertRefused(await ours.call(method, `/v1/emails/${odd}${suffix}`, call), 404, 'not_found');
      }
      assert.equal((await ours.email(id))['status'], 'scheduled');
    });
  }

  it('an id may be written with escapes', async () => {
    const id = await ours.sent();
    assert.equal((await ours.call('GET', `/v1/emails/${id.replace('em_', '%65m%5F')}`)).status, 200);
  });
});

describe('PATCH /v1/emails/:id', () => {
  it('200 {id, status, scheduled_at}: later, earlier and again', async () => {
    const id = await scheduled();
    for (const hours of [9, 1, 719]) {
      const at = later(hours);
      const answer = await patch(id, { scheduled_at: at });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(answer.body, { id, status: 'scheduled', scheduled_at: at });
      const email = await ours.email(id);
      assert.deepEqual([email['scheduled_at'], email['status']], [at, 'scheduled']);
    }
    const email = await ours.email(id);
    assert.deepEqual(types(email), ['email.scheduled', ...Array<string>(3).fill('email.rescheduled')]);
    assert.equal(email['last_event_at'], (email['events'] as { created_at: string }[]).at(-1)?.created_at);
    assert.deepEqual(await outbox(id), ['start', 'reschedule', 'reschedule', 'reschedule']);
  });

  it('takes an offset, and the same time again', async () => {
    const id = await scheduled();
    const at = new Date(Math.trunc(Date.now() / 1_000) * 1_000 + 5 * 3_600_000);
    const given = `${new Date(at.getTime() + 7_200_000).toISOString().slice(0, 19)}+02:00`;
    for (let i = 0; i < 2; i++) {
      assert.deepEqual((await patch(id, { scheduled_at: given })).body, {
        id,
        status: 'scheduled',
        scheduled_at: at.toISOString(),
      });
    }
  });

  for (const [what, json, param, says] of [
    ['left out', () => ({}), 'scheduled_at', 'is required'],
    ['null', () => ({ scheduled_at: null }), 'scheduled_at', 'must be a string'],
    ['a number', () => ({ scheduled_at: Date.now() + 9e6 }), 'scheduled_at', 'must be a string'],
    ['an array', () => ({ scheduled_at: [later()] }), 'scheduled_at', 'must be a string'],
    ['empty', () => ({ scheduled_at: '' }), 'scheduled_at', 'must be an ISO 8601 instant with an offset'],
    ['a word', () => ({ scheduled_at: 'tomorrow' }), 'scheduled_at', 'must be an ISO 8601 instant with an offset'],
    ['without an offset', () => ({ scheduled_at: later().slice(0, -1) }), 'scheduled_at', 'must be an ISO 8601'],
    ['past', () => ({ scheduled_at: '2001-01-01T00:00:00Z' }), 'scheduled_at', 'must be in the future'],
    ['now', () => ({ scheduled_at: inFuture({}) }), 'scheduled_at', 'must be in the future'],
    ['far', () => ({ scheduled_at: inFuture({ days: 30, ms: 5_000 }) }), 'scheduled_at', 'must be at most 30 days'],
    ['with a subject', () => ({ scheduled_at: later(), subject: 'x' }), 'subject', 'is not a known field'],
    ['with a status', () => ({ scheduled_at: later(), status: 'queued' }), 'status', 'is not a known field'],
    ['no object but null', () => null, undefined, 'the request body must be a JSON object'],
    ['no object but an array', () => [], undefined, 'the request body must be a JSON object'],
    ['no object but a string', () => later(), undefined, 'the request body must be a JSON object'],
  ] as const) {
    it(`422 and nothing changes: scheduled_at is ${what}`, async () => {
      const id = await scheduled();
      const before = await ours.email(id);
      const wakes = service.wakes();
      assertRefused(await patch(id, json()), 422, 'validation_error', param, says);
      assert.deepEqual(await ours.email(id), before);
      assert.deepEqual(await outbox(id), ['start']);
      assert.equal(service.wakes(), wakes);
    });
  }

  it('400 without a body, 415 without JSON', async () => {
    const id = await scheduled();
    assertRefused(await ours.call('PATCH', `/v1/emails/${id}`), 400, 'invalid_json');
    const headers = { 'content-type': 'application/json' };
    assertRefused(await ours.call('PATCH', `/v1/emails/${id}`, { raw: '{', headers }), 400, 'invalid_json');
    assertRefused(await ours.call('PATCH', `/v1/emails/${id}`, { raw: '{}' }), 415, 'unsupported_media_type');
  });
});

describe('POST /v1/emails/:id/cancel', () => {
  it('200 {id, status}; the email is not deleted', async () => {
    const at = later();
    const id = await ours.sent({ scheduled_at: at });
    const answer = await cancel(id);
    assert.deepEqual([answer.status, answer.body], [200, { id, status: 'canceled' }]);
    const email = await ours.email(id);
    assert.deepEqual([email['status'], email['scheduled_at'], email['error']], ['canceled', at, null]);
    assert.deepEqual(types(email), ['email.scheduled', 'email.canceled']);
    assert.deepEqual(await outbox(id), ['start', 'cancel']);
  });

  const bodies: readonly (readonly [string, object])[] = [
    ['no body', {}],
    ['no body, but a content type', { headers: { 'content-type': 'application/json' } }],
    ['an empty body of JSON', { raw: '', headers: { 'content-type': 'application/json' } }],
    [
      'an empty body of a form, as curl sends it',
      { raw: '', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    ],
    ['an empty body of text, as fetch sends it', { raw: '', headers: { 'content-type': 'text/plain;charset=UTF-8' } }],
    ['{}', { json: {} }],
    ['white space around {}', { raw: ' {} \n', headers: { 'content-type': 'application/json; charset=utf-8' } }],
  ];
  for (const [what, call] of bodies) {
    it(`takes no body: ${what}`, async () => {
      const answer = await ours.call('POST', `/v1/emails/${await scheduled()}/cancel`, call);
      assert.equal(answer.status, 200, answer.text);
    });
  }

  for (const [what, json, param] of [
    ['a field', { reason: 'x' }, 'reason'],
    ['a field that is null', { reason: null }, 'reason'],
    ['an array', [], undefined],
    ['null', null, undefined],
    ['a string', 'x', undefined],
    ['a number', 0, undefined],
  ] as const) {
    it(`422 and nothing changes: ${what}`, async () => {
      const id = await scheduled();
      const answer = await ours.call('POST', `/v1/emails/${id}/cancel`, { json });
      assertRefused(answer, 422, 'validation_error', param);
      assert.equal((await ours.email(id))['status'], 'scheduled');
    });
  }

  it('400 for what is no JSON, 415 for what is another type', async () => {
    const path = `/v1/emails/${await scheduled()}/cancel`;
    const post = (raw: string, type: string) => ours.call('POST', path, { raw, headers: { 'content-type': type } });
    assertRefused(await post('{', 'application/json'), 400, 'invalid_json');
    assertRefused(await post(' ', 'application/json'), 400, 'invalid_json');
    assertRefused(await post('x', 'text/plain'), 415, 'unsupported_media_type');
  });
});

describe('PATCH or cancel on an email whose status is not scheduled is refused with 422 not_scheduled', () => {
  for (const [status, make] of Object.entries({
    queued: () => moved(),
    sent: () => moved('sent'),
    delivered: () => moved('sent', 'delivered'),
    canceled: () => moved('canceled'),
    suppressed: () => moved('suppressed'),
    rejected: () => moved('rejected'),
    'scheduled, and claimed by a worker': async () => {
      const id = await scheduled();
      await project(service.pool, 'claimed', [{ id }]);
      return id;
    },
  })) {
    it(`${status}, and nothing changes, however often`, async () => {
      const id = await make();
      const before = await ours.email(id);
      const actions = await outbox(id);
      for (let i = 0; i < 2; i++) {
        const says = 'only an email that is still scheduled';
        assertRefused(await cancel(id), 422, 'not_scheduled', undefined, says);
        assertRefused(await patch(id, { scheduled_at: later() }), 422, 'not_scheduled', undefined, says);
      }
      assert.deepEqual(await ours.email(id), before);
      assert.deepEqual(await outbox(id), actions);
    });
  }

  it('one of many who cancel at once wins', async () => {
    const id = await scheduled();
    const answers = await Promise.all(Array.from({ length: 20 }, () => cancel(id)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array<number>(19).fill(422)]);
    assert.deepEqual(types(await ours.email(id)), ['email.scheduled', 'email.canceled']);
    assert.deepEqual(await outbox(id), ['start', 'cancel']);
  });

  it('of many who move it while one cancels, all before him win and none after', async () => {
    for (let round = 0; round < 10; round++) {
      const id = await scheduled();
      const moves = Array.from({ length: 10 }, (_, i) => patch(id, { scheduled_at: later(i + 1) }));
      const [canceled, ...patched] = await Promise.all([cancel(id), ...moves]);
      assert.equal(canceled.status, 200);
      const won = patched.filter(({ status }) => status === 200);
      for (const answer of patched) if (!won.includes(answer)) assertRefused(answer, 422, 'not_scheduled');
      const email = await ours.email(id);
      assert.equal(email['status'], 'canceled');
      const moves200 = Array<string>(won.length).fill('email.rescheduled');
      assert.deepEqual(types(email), ['email.scheduled', ...moves200, 'email.canceled']);
    }
  });
});

describe('unknown query parameters are refused with 422 that names them', () => {
  for (const [method, path, call] of [
    ['GET', '/v1/emails/:id'],
    ['PATCH', '/v1/emails/:id', { json: { scheduled_at: later() } }],
    ['POST', '/v1/emails/:id/cancel'],
    ['POST', '/v1/emails', { json: {} }],
  ] as const) {
    it(`${method} ${path}`, async () => {
      const id = await scheduled();
      const json = path === '/v1/emails' ? { json: ours.mail() } : call;
      for (const [query, param] of [
        ['limit=1', 'limit'],
        ['expand', 'expand'],
        ['api_key=x', 'api_key'],
        ['__proto__=1', '__proto__'],
        ['a%2Fb=1', 'a/b'],
        ['%ZZ=1', '%ZZ'],
        ['x=1&x=2', 'x'],
        [`${'x'.repeat(1_000)}=1`, 'x'.repeat(200)],
      ] as const) {
        const answer = await ours.call(method, `${path.replace(':id', id)}?${query}`, json);
        assertRefused(answer, 422, 'validation_error', param, 'is not a known parameter');
      }
      assert.equal((await ours.email(id))['status'], 'scheduled');
      assert.ok((await ours.call(method, `${path.replace(':id', id)}?`, json)).status < 300);
    });
  }
});
