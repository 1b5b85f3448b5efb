import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BOUNCE_REASONS } from '../../src/domain/email/email.ts';
import { project } from '../../src/projection/emails.ts';
import { assertRefused, assertTimes, inFuture, TIMESTAMP, useService } from './service.ts';
import { head, sendBytes } from './socket.ts';

/** Get, reschedule and cancel. Another organization's ids are tested in two-organizations.test.ts. */
const service = await useService();
const ours = await service.organization();

const ABSENT = `em_${'0'.repeat(26)}`;
const later = (hours = 3) => inFuture({ hours });
const scheduled = () => ours.sent({ scheduled_at: later() });
const patch = (id: string, json: unknown) => ours.call('PATCH', `/v1/emails/${id}`, { json });
const cancel = (id: string) => ours.call('POST', `/v1/emails/${id}/cancel`);
const types = (email: Record<string, unknown>) => (email['events'] as { type: string }[]).map(({ type }) => type);
const outbox = async (id: string) => {
  const text = 'SELECT action FROM outbox WHERE message_id = $1 ORDER BY id';
  return (await service.pool.query<{ action: string }>(text, [id])).rows.map(({ action }) => action);
};

/** An email after these changes by a worker and a provider. */
async function moved(...changes: Exclude<Parameters<typeof project>[1], 'failed' | 'bounced'>[]): Promise<string> {
  const id = await ours.sent(changes[0] === 'canceled' ? { scheduled_at: later() } : {});
  for (const change of changes) await project(service.pool, change, [{ id }]);
  return id;
}

describe('GET /v1/emails/:id', () => {
  it('returns exactly the fields of the interface, in its order', async () => {
    const { headers, body } = await ours.call('GET', `/v1/emails/${await ours.sent()}`);
    assert.equal(headers['content-type'], 'application/json; charset=utf-8');
    assert.deepEqual(Object.keys(body as object), [
      ...['id', 'batch_id', 'from', 'to', 'cc', 'bcc', 'reply_to', 'subject', 'marketing', 'tags', 'headers'],
      ...['status', 'error', 'bounce_reason', 'created_at', 'scheduled_at', 'last_event_at', 'events', 'attachments'],
    ]);
    const { created_at: createdAt, last_event_at: lastEventAt, events } = body as Record<string, unknown>;
    assert.deepEqual([lastEventAt, events], [createdAt, [{ type: 'email.queued', created_at: createdAt }]]);
  });

  it('returns the full event timeline, oldest first, and the time of the latest event', async () => {
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

  it('bounce_reason is any reason of the table, and null unless the status is bounced', async () => {
    for (const reason of BOUNCE_REASONS) {
      const id = await moved('sent');
      assert.equal((await ours.email(id))['bounce_reason'], null);
      await project(service.pool, 'bounced', [{ id, error: '550 no', bounce_reason: reason }]);
      const { status, bounce_reason: shown } = await ours.email(id);
      assert.deepEqual([status, shown], ['bounced', reason]);
    }
  });

  it('returns error and bounce_reason of a bounce, and the error of a failure', async () => {
    const [bounced, failed] = await Promise.all([ours.sent(), ours.sent()]);
    const error = '550 5.1.1 "no such user"';
    await project(service.pool, 'bounced', [{ id: bounced, error, bounce_reason: 'mailbox_not_found' }]);
    await project(service.pool, 'failed', [{ id: failed, error: 'no provider took it' }]);
    const shown = async (id: string) => {
      const email = await ours.email(id);
      return [email['status'], email['error'], email['bounce_reason']];
    };
    assert.deepEqual(await shown(bounced), ['bounced', error, 'mailbox_not_found']);
    assert.deepEqual(await shown(failed), ['failed', 'no provider took it', null]);
  });
});

describe('404 not_found for an id of an odd form', () => {
  for (const [method, suffix, call] of [
    ['GET', '', {}],
    ['PATCH', '', { json: { scheduled_at: later() } }],
    ['POST', '/cancel', {}],
  ] as const) {
    it(`${method} /v1/emails/:id${suffix}`, async () => {
      const id = await scheduled();
      for (const odd of [
        ...[ABSENT, 'x', "'%20OR%201=1--", '%00', `${id}%00`, '%ZZ', '%ED%A0%80', '..%2F..%2Fetc', id.toUpperCase()],
        ...[`${id}%20`, id.slice(0, -1), id.replace('em_', 'bt_'), 'x'.repeat(10_000), `${id}%3Fx`, '__proto__'],
      ]) {
        assertRefused(await ours.call(method, `/v1/emails/${odd}${suffix}`, call), 404, 'not_found');
      }
      assert.equal((await ours.email(id))['status'], 'scheduled');
    });
  }
});

describe('PATCH /v1/emails/:id', () => {
  it('returns 200 {id, status, scheduled_at}: later, earlier and again', async () => {
    const id = await scheduled();
    for (const hours of [9, 1, 719]) {
      const at = later(hours);
      const local = `${new Date(Date.parse(at) + 7_200_000).toISOString().slice(0, -1)}+02:00`;
      const answer = await patch(id, { scheduled_at: hours === 9 ? local : at });
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

  for (const [name, json, param, message] of [
    ['left out', () => ({}), 'scheduled_at', 'is required'],
    ['null', () => ({ scheduled_at: null }), 'scheduled_at', 'must be a string'],
    ['no instant', () => ({ scheduled_at: 'tomorrow' }), 'scheduled_at', 'must be an ISO 8601 instant with an offset'],
    ['now', () => ({ scheduled_at: inFuture({}) }), 'scheduled_at', 'must be in the future'],
    ['far', () => ({ scheduled_at: inFuture({ days: 30, ms: 5_000 }) }), 'scheduled_at', 'must be at most 30 days'],
    ['with a subject', () => ({ scheduled_at: later(), subject: 'x' }), 'subject', 'is not a known field'],
    ['not in an object', () => [], undefined, 'the request body must be a JSON object'],
  ] as const) {
    it(`returns 422 and changes nothing: scheduled_at is ${name}`, async () => {
      const id = await scheduled();
      const before = await ours.email(id);
      const wakes = service.wakes();
      assertRefused(await patch(id, json()), 422, 'validation_error', param, message);
      assert.deepEqual(await ours.email(id), before);
      assert.deepEqual(await outbox(id), ['start']);
      assert.equal(service.wakes(), wakes);
    });
  }
});

describe('POST /v1/emails/:id/cancel', () => {
  it('returns 200 {id, status} and does not delete the email', async () => {
    const at = later();
    const id = await ours.sent({ scheduled_at: at });
    const answer = await cancel(id);
    assert.deepEqual([answer.status, answer.body], [200, { id, status: 'canceled' }]);
    const email = await ours.email(id);
    assert.deepEqual([email['status'], email['scheduled_at'], email['error']], ['canceled', at, null]);
    assert.deepEqual(types(email), ['email.scheduled', 'email.canceled']);
    assert.deepEqual(await outbox(id), ['start', 'cancel']);
  });

  const JSON_TYPE = 'application/json';
  for (const [name, raw, type] of [
    ['no body, but a content type', undefined, JSON_TYPE],
    ['an empty form, as curl sends it', '', 'application/x-www-form-urlencoded'],
    ['{} with white space', ' {} \n', `${JSON_TYPE}; charset=utf-8`],
  ] as const) {
    it(`accepts ${name}`, async () => {
      const headers = { 'content-type': type };
      const call = raw === undefined ? { headers } : { raw, headers };
      const answer = await ours.call('POST', `/v1/emails/${await scheduled()}/cancel`, call);
      assert.equal(answer.status, 200, answer.text);
    });
  }

  it('accepts a foreign content type with neither a body nor Content-Length', async () => {
    const path = `/v1/emails/${await scheduled()}/cancel`;
    const answer = await sendBytes(service.port, head(path, ours.key, 'Content-Type: text/plain'));
    assert.equal(answer.status, 200, answer.text);
  });

  it('refuses any other body and changes nothing', async () => {
    const id = await scheduled();
    for (const [raw, type, status, code, param] of [
      ['{"reason":null}', JSON_TYPE, 422, 'validation_error', 'reason'],
      ['null', JSON_TYPE, 422, 'validation_error', undefined],
      [' ', JSON_TYPE, 400, 'invalid_json', undefined],
      ['x', 'text/plain', 415, 'unsupported_media_type', undefined],
    ] as const) {
      const answer = await ours.call('POST', `/v1/emails/${id}/cancel`, { raw, headers: { 'content-type': type } });
      assertRefused(answer, status, code, param);
    }
    assert.equal((await ours.email(id))['status'], 'scheduled');
  });
});

describe('PATCH and cancel return 422 not_scheduled for an email that is not scheduled', () => {
  for (const [status, make] of Object.entries({
    sent: () => moved('sent'),
    canceled: () => moved('canceled'),
    suppressed: () => moved('suppressed'),
    'scheduled, and claimed by a worker': async () => {
      const id = await scheduled();
      await project(service.pool, 'claimed', [{ id }]);
      return id;
    },
  })) {
    it(`${status}, and change nothing`, async () => {
      const id = await make();
      const before = await ours.email(id);
      const actions = await outbox(id);
      const shown = status.split(',')[0] === 'scheduled' ? 'queued' : status;
      const message = `only an email that is still scheduled can be moved or canceled; this one is ${shown}`;
      assertRefused(await cancel(id), 422, 'not_scheduled', undefined, message);
      assertRefused(await patch(id, { scheduled_at: later() }), 422, 'not_scheduled', undefined, message);
      assert.deepEqual(await ours.email(id), before);
      assert.deepEqual(await outbox(id), actions);
    });
  }

  it('all but one of concurrent cancels', async () => {
    const id = await scheduled();
    const answers = await Promise.all(Array.from({ length: 20 }, () => cancel(id)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array<number>(19).fill(422)]);
    assert.deepEqual(types(await ours.email(id)), ['email.scheduled', 'email.canceled']);
    assert.deepEqual(await outbox(id), ['start', 'cancel']);
  });

  it('reschedules after a concurrent cancel, and none before it', async () => {
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

// test/http/openapi-answers.test.ts sends an unknown parameter to every operation.
it('422 names an unknown query parameter', async () => {
  for (const [query, param] of [
    ['a%2Fb=1', 'a/b'],
    ['%ZZ=1', '%ZZ'],
    [`${'x'.repeat(1_000)}=1`, 'x'.repeat(200)],
  ] as const) {
    const answer = await ours.call('GET', `/v1/emails/${ABSENT}?${query}`);
    assertRefused(answer, 422, 'validation_error', param, 'is not a known parameter');
  }
});

it('a time in any answer that is not UTC with milliseconds fails its test', () => {
  const time = '2026-03-01T09:30:00.000Z';
  assertTimes({ emails: [{ created_at: time, scheduled_at: null }] });
  for (const bad of [time.replace('.000', ''), time.replace('Z', '+00:00'), '']) {
    assert.throws(() => assertTimes({ emails: [{ created_at: bad }] }), bad);
  }
});
