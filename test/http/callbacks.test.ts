import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { makeMetadataSigner } from '../../src/domain/email/metadata-signature.ts';
import { project } from '../../src/projection/emails.ts';
import { makePool } from '../../src/store/postgres/pool.ts';
import { BOUNCE, CLICK, COMPLAINT, DELIVERY, OPEN, SUBSCRIPTION_CHANGE } from '../providers/postmark-records.ts';
import {
  assertRefused,
  CALLBACK,
  inFuture,
  type Organization,
  SECRET_KEY,
  type Service,
  startService,
} from './service.ts';

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
const { sign } = makeMetadataSigner(SECRET_KEY);
/** What our emails carry and Postmark returns. */
const metadata = (email: unknown) => ({
  email,
  call: 'call_1',
  ...(typeof email === 'string' && { sig: sign(email) }),
});
/** The recipient of `delivery`. */
const PERSON = 'person@example.net';
const sent = (fields: Record<string, unknown> = {}) => ours.sent({ to: PERSON, ...fields });

/** A record as Postmark posts it (https://postmarkapp.com/developer/webhooks/delivery-webhook). */
function delivery(email: unknown, fields: object = {}): Record<string, unknown> {
  return {
    RecordType: 'Delivery',
    ServerID: 23,
    MessageStream: 'outbound',
    MessageID: `00000000-0000-0000-0000-${String(++count).padStart(12, '0')}`,
    Recipient: PERSON,
    Tag: '',
    DeliveredAt: '2026-03-01T09:30:00.1234567Z',
    Details: 'Test delivery webhook details',
    Metadata: metadata(email),
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
      const id = await sent();
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
    const shut = await startService({ postmarkCallbacks: { credentials: null, broadcastStream: 'broadcast' } });
    t.after(() => shut.close());
    for (const each of [authorization, basic('', ''), basic('null', 'null'), basic('undefined', 'undefined')]) {
      const answer = await shut.call('POST', PATH, { json: {}, headers: { authorization: each } });
      assertRefused(answer, 401, 'unauthorized');
    }
  });
});

describe('a Delivery', () => {
  it('wakes the relay, since customers may have to be told', async () => {
    const id = await sent();
    const before = service.wakes();
    assert.equal((await report(delivery(id))).status, 200);
    assert.equal(service.wakes(), before + 1);
  });

  it('makes a sent email delivered', async () => {
    const id = await sent();
    await project(service.pool, 'sent', [{ id }]);
    const answer = await report(delivery(id));
    assert.deepEqual([answer.status, answer.body], [200, {}]);
    assert.deepEqual(await told(id), ['delivered', 'email.queued', 'email.sent', 'email.delivered']);
  });

  it('F12: may come before our own record of the hand-over: a late event never lowers the status', async () => {
    const id = await sent();
    assert.equal((await report(delivery(id))).status, 200);
    assert.deepEqual(await told(id), ['delivered', 'email.queued', 'email.delivered']);
    await project(service.pool, 'sent', [{ id }]);
    assert.deepEqual(await told(id), ['delivered', 'email.queued', 'email.sent', 'email.delivered']);
  });

  it('repeated 100 times is kept in the timeline once', async () => {
    const id = await sent();
    const record = delivery(id);
    for (let i = 0; i < 50; i++) assert.equal((await report(record)).status, 200);
    const answers = await Promise.all(Array.from({ length: 50 }, () => report(record)));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    assert.deepEqual(await told(id), ['delivered', 'email.queued', 'email.delivered']);
  });

  it('repeated at the same time, the first time too, is kept once', async () => {
    for (let round = 0; round < 10; round++) {
      const id = await sent();
      const record = delivery(id);
      const answers = await Promise.all(Array.from({ length: 10 }, () => report(record)));
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
      assert.deepEqual(await told(id), ['delivered', 'email.queued', 'email.delivered']);
    }
  });

  it('of another recipient is another event', async () => {
    const id = await sent({ to: ['a@example.net', 'b@example.net'] });
    const first = delivery(id, { Recipient: 'a@example.net' });
    assert.equal((await report(first)).status, 200);
    assert.equal((await report({ ...first, Recipient: 'b@example.net' })).status, 200);
    assert.deepEqual(await told(id), ['delivered', 'email.queued', 'email.delivered', 'email.delivered']);
  });

  it('changes nothing about an email that was never handed over', async () => {
    const id = await sent({ scheduled_at: inFuture({ hours: 3 }) });
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

  it('with what no text of ours holds is kept, and changes nothing', async () => {
    const id = await sent();
    for (const record of [
      delivery('\uD800'),
      delivery(`${id}\0`),
      delivery(id, { MessageID: '\0' }),
      delivery(id, { Recipient: 'a\0b@example.net' }),
    ]) {
      assert.deepEqual(await keptOf(record), [JSON.stringify(record)]);
    }
    assert.deepEqual(await told(id), ['queued', 'email.queued']);
  });
});

/** What a record that is answered with 200 leaves among the kept ones. */
async function keptOf(record: unknown): Promise<string[]> {
  await service.pool.query('DELETE FROM provider_callbacks');
  const { status, body } = await report(record);
  assert.deepEqual([status, body], [200, {}]);
  const { rows } = await service.pool.query<{ provider: string; body: string }>(
    'SELECT provider, body FROM provider_callbacks',
  );
  assert.deepEqual(new Set(rows.map(({ provider }) => provider)), new Set(rows.length > 0 ? ['postmark'] : []));
  return rows.map((row) => row.body);
}

async function suppressed(address: string): Promise<string[]> {
  const { rows } = await service.pool.query<{ origin: string }>(
    'SELECT origin FROM suppressions WHERE org_id = $1 AND email = $2 ORDER BY origin',
    [ours.id, address],
  );
  return rows.map(({ origin }) => origin);
}

const about = <T extends object>(record: T, email: string, recipient: string) => ({
  ...record,
  MessageID: `m${++count}`,
  Metadata: metadata(email),
  ...('Email' in record ? { Email: recipient, ID: count } : { Recipient: recipient }),
});

describe('each record type reaches the timeline, the status and the suppression list', () => {
  const refused = { ...BOUNCE, Details: 'smtp;550 5.1.1 user unknown' };
  for (const [name, record, status, origins] of [
    ['Delivery', DELIVERY, 'delivered', []],
    ['Open', OPEN, 'opened', []],
    ['Click', CLICK, 'clicked', []],
    ['Bounce', refused, 'bounced', ['bounce']],
    ['Bounce that passes', { ...BOUNCE, Details: 'smtp;552 5.2.2 mailbox full' }, 'bounced', []],
    ['Bounce that is a delay', { ...BOUNCE, Type: 'Transient', Inactive: false }, 'delivery_delayed', []],
    ['Bounce of a deactivated address', { ...BOUNCE, Type: 'ManuallyDeactivated' }, 'bounced', ['provider']],
    ['SpamComplaint', COMPLAINT, 'complained', ['complaint']],
    ['SubscriptionChange', SUBSCRIPTION_CHANGE, 'sent', ['unsubscribe']],
  ] as const) {
    it(name, async () => {
      const to = `someone${++count}@example.net`;
      const id = await sent({ to });
      await project(service.pool, 'sent', [{ id }]);
      assert.deepEqual(await keptOf(about(record, id, to)), []);
      const event = status === 'sent' ? 'email.unsubscribed' : `email.${status}`;
      assert.deepEqual(await told(id), [status, 'email.queued', 'email.sent', event]);
      assert.deepEqual(await suppressed(to), origins);
      const { error, bounce_reason } = await ours.email(id);
      assert.equal(error !== null, status === 'bounced');
      assert.equal(bounce_reason !== null, status === 'bounced');
    });
  }

  it('a bounce is shown with its reason and the words of the server', async () => {
    const id = await sent({ to: 'gone@example.net' });
    await report(about(refused, id, 'gone@example.net'));
    const { error, bounce_reason } = await ours.email(id);
    assert.deepEqual(
      [bounce_reason, error],
      ['mailbox_not_found', "The recipient's server refused it: 550 5.1.1 user unknown"],
    );
  });
});

describe('F12: repeated reports and reports in the wrong order', () => {
  const records = (id: string, to: string) =>
    [DELIVERY, OPEN, CLICK, { ...BOUNCE, Details: 'smtp;552 5.2.2 mailbox full' }, COMPLAINT].map((record) =>
      about(record, id, to),
    );

  it('all types, 100 times each and all at once, before the hand-over is recorded: one event each', async () => {
    const to = `storm${++count}@example.net`;
    const id = await sent({ to });
    const storm = Array.from({ length: 100 }, () => records(id, to).map((record) => ({ ...record })));
    // One message: `about` gave each call new ids.
    const [first] = storm as [object[]];
    const answers = await Promise.all(storm.flatMap(() => first.map((record) => report(record))));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    await project(service.pool, 'sent', [{ id }]);
    const [status, ...events] = await told(id);
    assert.equal(status, 'complained');
    assert.deepEqual(events.toSorted(), [
      ...['email.bounced', 'email.clicked', 'email.complained', 'email.delivered', 'email.opened'],
      ...['email.queued', 'email.sent'],
    ]);
    assert.deepEqual(await suppressed(to), ['complaint']);
  });

  it('backwards: the status never goes back', async () => {
    const to = `back${++count}@example.net`;
    const id = await sent({ to });
    const seen = [];
    for (const record of records(id, to).reverse()) {
      await report(record);
      const [status] = await told(id);
      seen.push(status);
    }
    await project(service.pool, 'sent', [{ id }]);
    assert.deepEqual([...seen, (await told(id))[0]], Array(6).fill('complained'));
  });
});

describe("changes of Postmark's own suppression list", () => {
  it('come to ours and go from it, as far as only Postmark said so', async () => {
    const to = `Listed${++count}@example.net`;
    const id = await sent({ to });
    const change = (fields: object) => report({ ...about(SUBSCRIPTION_CHANGE, id, to), ...fields });
    const freed = { SuppressSending: false, SuppressionReason: null };
    await change({ Origin: 'Customer', MessageStream: 'outbound' });
    await change({ Origin: 'Customer', MessageStream: 'outbound' });
    await change({});
    assert.deepEqual(await suppressed(to.toLowerCase()), ['provider', 'unsubscribe']);
    await change({ ...freed, MessageStream: 'outbound' });
    assert.deepEqual(await suppressed(to.toLowerCase()), ['unsubscribe']);
    await change(freed);
    assert.deepEqual(await suppressed(to.toLowerCase()), []);
    await report(about({ ...BOUNCE, Details: 'smtp;550 5.1.1 user unknown' }, id, to));
    await change(freed);
    assert.deepEqual(await suppressed(to.toLowerCase()), ['bounce']);
    assert.equal((await told(id)).includes('email.suppressed'), false);
  });

  it('are kept when there is no such email, or none is named', async () => {
    const change = { ...SUBSCRIPTION_CHANGE, Origin: 'Customer' };
    for (const Metadata of [{ email: `em_${'0'.repeat(26)}` }, {}, null]) {
      assert.equal((await keptOf({ ...change, Metadata })).length, 1);
    }
  });
});

describe('what is not ours, or means nothing to us, is kept as it came', () => {
  for (const [what, record] of Object.entries({
    'another record type': delivery('em_1', { RecordType: 'Inbound' }),
    'no record type': delivery('em_1', { RecordType: undefined }),
    'an automatic answer': { ...BOUNCE, Type: 'AutoResponder' },
    'no metadata': delivery('em_1', { Metadata: undefined }),
    'metadata that is null': delivery('em_1', { Metadata: null }),
    'metadata that is a string': delivery('em_1', { Metadata: 'x' }),
    'metadata of others': delivery('em_1', { Metadata: { order: '7' } }),
    'an id that is a number': delivery(5),
    'an id that is an object': delivery({}),
    'an empty object': {},
    null: null,
    'an array': [],
    'a number': 5,
    'a string': 'Delivery',
  })) {
    it(what, async () => {
      assert.deepEqual(await keptOf(record), [JSON.stringify(record)]);
    });
  }
});

it('503 while the database is away, whatever is reported, so that Postmark tries again', async (t) => {
  const away = makePool('postgres://nobody@127.0.0.1:1/none', 'test', 2, () => undefined);
  const shut = await startService({ pool: away });
  t.after(async () => {
    await shut.close();
    await away.end();
  });
  const customer = { ...SUBSCRIPTION_CHANGE, Origin: 'Customer' };
  for (const json of [DELIVERY, BOUNCE, customer, { RecordType: 'Inbound' }]) {
    const answer = await shut.call('POST', PATH, { json, headers: { authorization } });
    assertRefused(answer, 503, 'unavailable');
    assert.ok(answer.headers['retry-after']);
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

  it('413 for what is larger than a record can be, announced or not', async () => {
    const large = Buffer.from(JSON.stringify(delivery('em_1', { Content: 'x'.repeat(1_048_576) })));
    assertRefused(await post(large), 413, 'payload_too_large');
    const chunked = await fetch(service.url + PATH, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: new Blob([large]).stream(),
      duplex: 'half',
    });
    assert.equal(chunked.status, 413);
    const fits = JSON.stringify(delivery('em_1', { Content: 'x'.repeat(1_048_576 - 500) }));
    assert.equal((await post(fits)).status, 200);
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
