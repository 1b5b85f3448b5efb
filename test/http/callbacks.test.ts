import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { project } from '../../src/projection/emails.ts';
import { assertRefused, CALLBACK, inFuture, type Organization, type Service, startService } from './service.ts';

let service: Service;
let ours: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
});
after(() => service.close());

const PATH = '/callbacks/postmark';
const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
const authorization = basic(CALLBACK.user, CALLBACK.password);
const report = (json: unknown) => service.call('POST', PATH, { json, headers: { authorization } });
let count = 0;

/** A record as Postmark posts it (https://postmarkapp.com/developer/webhooks/delivery-webhook). */
function delivery(email: unknown, fields: object = {}): Record<string, unknown> {
  return {
    RecordType: 'Delivery',
    ServerID: 23,
    MessageStream: 'outbound',
    MessageID: `00000000-0000-0000-0000-${String(++count).padStart(12, '0')}`,
    Recipient: 'person@example.net',
    Tag: '',
    DeliveredAt: '2026-03-01T09:30:00.1234567Z',
    Details: 'Test delivery webhook details',
    Metadata: { email, call: 'call_1' },
    ...fields,
  };
}

async function told(id: string): Promise<unknown[]> {
  const email = await ours.email(id);
  return [email['status'], ...(email['events'] as { type: string }[]).map(({ type }) => type)];
}

describe('POST /callbacks/postmark asks for its user and password (RFC 7617)', () => {
  for (const [what, given] of Object.entries({
    'no header': undefined,
    'an empty header': '',
    'the scheme alone': 'Basic ',
    'another password': basic(CALLBACK.user, 'x'),
    'another user': basic('x', CALLBACK.password),
    'no password': basic(CALLBACK.user, ''),
    'no user': basic('', CALLBACK.password),
    'more than the password': basic(CALLBACK.user, `${CALLBACK.password}x`),
    'less than the password': basic(CALLBACK.user, CALLBACK.password.slice(0, -1)),
    capitals: basic(CALLBACK.user.toUpperCase(), CALLBACK.password),
    'plain text': `Basic ${CALLBACK.user}:password`,
    'another scheme': authorization.replace('Basic', 'Bearer'),
    'more behind it': `${authorization} x`,
    'no base64': 'Basic %%%',
  })) {
    it(`401: ${what}`, async () => {
      const id = await ours.sent();
      const headers = { ...(given !== undefined && { authorization: given }) };
      assertRefused(await service.call('POST', PATH, { json: delivery(id), headers }), 401, 'unauthorized');
      assert.deepEqual(await told(id), ['queued', 'email.queued']);
    });
  }

  it('401 with an API key', async () => {
    assertRefused(await ours.call('POST', PATH, { json: delivery('em_1') }), 401, 'unauthorized');
  });

  it('401 before the body is looked at', async () => {
    const headers = { 'content-type': 'text/plain' };
    assertRefused(await service.call('POST', PATH, { raw: '{', headers }), 401, 'unauthorized');
  });

  it('without credentials in the settings, 401 whatever is given', async (t) => {
    const shut = await startService({ postmarkCallback: null });
    t.after(() => shut.close());
    for (const each of [authorization, basic('', ''), basic('null', 'null'), basic('undefined', 'undefined')]) {
      const answer = await shut.call('POST', PATH, { json: {}, headers: { authorization: each } });
      assertRefused(answer, 401, 'unauthorized');
    }
  });
});

describe('a Delivery', () => {
  it('makes a sent email delivered', async () => {
    const id = await ours.sent();
    await project(service.pool, 'sent', [{ id }]);
    const answer = await report(delivery(id));
    assert.deepEqual([answer.status, answer.body], [200, {}]);
    assert.deepEqual(await told(id), ['delivered', 'email.queued', 'email.sent', 'email.delivered']);
  });

  it('may come before our own record of the hand-over: a late event never lowers the status', async () => {
    const id = await ours.sent();
    assert.equal((await report(delivery(id))).status, 200);
    assert.deepEqual(await told(id), ['delivered', 'email.queued', 'email.delivered']);
    await project(service.pool, 'sent', [{ id }]);
    assert.deepEqual(await told(id), ['delivered', 'email.queued', 'email.delivered', 'email.sent']);
  });

  it('repeated 100 times is kept in the timeline once', async () => {
    const id = await ours.sent();
    const record = delivery(id);
    for (let i = 0; i < 50; i++) assert.equal((await report(record)).status, 200);
    const answers = await Promise.all(Array.from({ length: 50 }, () => report(record)));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    assert.deepEqual(await told(id), ['delivered', 'email.queued', 'email.delivered']);
  });

  it('repeated at the same time, the first time too, is kept once', async () => {
    for (let round = 0; round < 10; round++) {
      const id = await ours.sent();
      const record = delivery(id);
      const answers = await Promise.all(Array.from({ length: 10 }, () => report(record)));
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
      assert.deepEqual(await told(id), ['delivered', 'email.queued', 'email.delivered']);
    }
  });

  it('of another recipient is another event', async () => {
    const id = await ours.sent({ to: ['a@example.net', 'b@example.net'] });
    const first = delivery(id, { Recipient: 'a@example.net' });
    assert.equal((await report(first)).status, 200);
    assert.equal((await report({ ...first, Recipient: 'b@example.net' })).status, 200);
    assert.deepEqual(await told(id), ['delivered', 'email.queued', 'email.delivered', 'email.delivered']);
  });

  it('changes nothing about an email that was never handed over', async () => {
    const id = await ours.sent({ scheduled_at: inFuture({ hours: 3 }) });
    assert.equal((await report(delivery(id))).status, 200);
    assert.deepEqual(await told(id), ['scheduled', 'email.scheduled']);
  });

  it('of an email that is not ours is taken and changes nothing', async () => {
    const { rows: before } = await service.pool.query('SELECT count(*) FROM email_events');
    for (const id of [`em_${'0'.repeat(26)}`, '', 'x', "' OR 1=1 --", 'x'.repeat(100_000)]) {
      const { status, body } = await report(delivery(id));
      assert.deepEqual([status, body], [200, {}]);
    }
    assert.deepEqual((await service.pool.query('SELECT count(*) FROM email_events')).rows, before);
  });

  it('with what no text of ours holds is refused', async () => {
    const id = await ours.sent();
    assertRefused(await report(delivery('\uD800')), 422, 'validation_error');
    assertRefused(await report(delivery(`${id}\0`)), 422, 'validation_error');
    assertRefused(await report(delivery(id, { MessageID: '\0' })), 422, 'validation_error');
    assertRefused(await report(delivery(id, { Recipient: 'a\0b@example.net' })), 422, 'validation_error');
    assert.deepEqual(await told(id), ['queued', 'email.queued']);
  });
});

describe('what cannot be handled yet gets 503, so that Postmark tries again', () => {
  for (const type of ['Bounce', 'SpamComplaint', 'Open', 'Click', 'SubscriptionChange', 'Inbound', '', 'delivery']) {
    it(`RecordType ${JSON.stringify(type)}`, async () => {
      const id = await ours.sent();
      const answer = await report(delivery(id, { RecordType: type }));
      assertRefused(answer, 503, 'unavailable');
      assert.ok(answer.headers['retry-after']);
      assert.deepEqual(await told(id), ['queued', 'email.queued']);
    });
  }

  for (const [what, json] of Object.entries({
    'an empty object': {},
    null: null,
    'an array': [],
    'a number': 5,
    'a string': 'Delivery',
    'no RecordType': delivery('em_1', { RecordType: undefined }),
  })) {
    it(what, async () => {
      assertRefused(await report(json), 503, 'unavailable');
    });
  }
});

describe('a Delivery of what we did not send, as when somebody tries the webhook out, gets 200 and changes nothing', () => {
  for (const [what, json] of Object.entries({
    'no metadata': delivery('em_1', { Metadata: undefined }),
    'metadata that is null': delivery('em_1', { Metadata: null }),
    'metadata that is a string': delivery('em_1', { Metadata: 'x' }),
    'metadata of others': delivery('em_1', { Metadata: { order: '7' } }),
    'an id that is a number': delivery(5),
    'an id that is an object': delivery({}),
  })) {
    it(what, async () => {
      const answer = await report(json);
      assert.deepEqual([answer.status, answer.body], [200, {}]);
    });
  }
});

describe('garbage', () => {
  const post = (raw: string | Buffer, type = 'application/json', path = PATH) =>
    service.call('POST', path, { raw, headers: { authorization, 'content-type': type } });

  it('400 for what is no JSON', async () => {
    for (const raw of ['', ' ', '{', 'RecordType=Delivery', '\0', Buffer.from('ff', 'hex')]) {
      assertRefused(await post(raw), 400, 'invalid_json');
    }
    assertRefused(await service.call('POST', PATH, { headers: { authorization } }), 400, 'invalid_json');
  });

  it('415 for what is another type', async () => {
    assertRefused(
      await post('RecordType=Delivery', 'application/x-www-form-urlencoded'),
      415,
      'unsupported_media_type',
    );
  });

  it('422 for a key that would reach an object prototype', async () => {
    assertRefused(
      await post('{"RecordType":"Delivery","Metadata":{"__proto__":{"email":"x"}}}'),
      422,
      'validation_error',
    );
  });

  it('422 for a query parameter', async () => {
    assertRefused(await post(JSON.stringify(delivery('x')), undefined, `${PATH}?x=1`), 422, 'validation_error', 'x');
  });
});
