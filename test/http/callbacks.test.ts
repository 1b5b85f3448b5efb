import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { makeMetadataSigner } from '../../src/domain/email/metadata-signature.ts';
import { project } from '../../src/projection/emails.ts';
import { makePool } from '../../src/store/postgres/pool.ts';
import { BOUNCE, CLICK, COMPLAINT, DELIVERY, OPEN, SUBSCRIPTION_CHANGE } from '../providers/postmark-records.ts';
import {
  allPages,
  assertRefused,
  CALLBACK,
  POSTMARK_AUTHORIZATION,
  SECRET_KEY,
  startService,
  useService,
} from './service.ts';

/** Callbacks of Postmark. What each record means is tested in test/providers/postmark-callbacks.test.ts. */
const service = await useService();
const ours = await service.organization();

const PATH = '/callbacks/postmark';
const RECIPIENT = 'person@example.net';
const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
const authorization = POSTMARK_AUTHORIZATION;
const { sign } = makeMetadataSigner(SECRET_KEY);
const REFUSED = { ...BOUNCE, Details: 'smtp;550 5.1.1 user unknown' };
const CUSTOMER = { ...SUBSCRIPTION_CHANGE, Origin: 'Customer' };
const MAILBOX_FULL = { ...BOUNCE, Details: 'smtp;552 5.2.2 mailbox full' };

let count = 0;
const sent = (fields: object = {}) => ours.sent({ to: RECIPIENT, ...fields });
const report = (json: unknown) => service.call('POST', PATH, { json, headers: { authorization } });

/** A record about an email of ours, with the signed metadata that Postmark returns. */
const recordOf = <T extends object>(record: T, email: string, recipient = RECIPIENT) => ({
  ...record,
  MessageID: `m${++count}`,
  Metadata: { email, call: 'call_1', sig: sign(email) },
  ...('Email' in record ? { Email: recipient, ID: count } : { Recipient: recipient }),
});

/** The status of an email and the types of its events. */
async function timeline(id: string): Promise<unknown[]> {
  const email = await ours.email(id);
  return [email['status'], ...(email['events'] as { type: string }[]).map(({ type }) => type)];
}

/** Reports a record, which is answered with 200. @returns the callbacks that are kept as received */
async function storedCallbacksOf(record: unknown): Promise<string[]> {
  await service.pool.query('DELETE FROM provider_callbacks');
  const { status, body } = await report(record);
  assert.deepEqual([status, body], [200, {}]);
  const { rows } = await service.pool.query<{ provider: string; body: string }>(
    'SELECT provider, body FROM provider_callbacks',
  );
  for (const { provider } of rows) assert.equal(provider, 'postmark');
  return rows.map((row) => row.body);
}

async function suppressed(address: string): Promise<unknown[]> {
  const list = await allPages(ours, `/v1/suppressions?email=${address}`, 50);
  return list.map(({ origin }) => origin).sort();
}

describe('POST /callbacks/postmark requires its user and password (RFC 7617)', () => {
  for (const [name, given] of Object.entries({
    'no header': undefined,
    'another password': basic(CALLBACK.user, 'x'),
    'no password': basic(CALLBACK.user, ''),
    'a shorter password': basic(CALLBACK.user, CALLBACK.password.slice(0, -1)),
    'another scheme': authorization.replace('Basic', 'Bearer'),
    'an API key': `Bearer ${ours.key}`,
  })) {
    it(`401: ${name}`, async () => {
      const id = await sent();
      const headers = { ...(given !== undefined && { authorization: given }) };
      assertRefused(await service.call('POST', PATH, { json: recordOf(DELIVERY, id), headers }), 401, 'unauthorized');
      assert.deepEqual(await timeline(id), ['queued', 'email.queued']);
    });
  }

  it('401 for every request without credentials in the settings', async (t) => {
    const postmarkCallbacks = { credentials: null, broadcastStream: 'broadcast' };
    const unset = await startService({ pool: service.pool, postmarkCallbacks });
    t.after(() => unset.close());
    for (const each of [authorization, basic('', ''), basic('null', 'null'), basic('undefined', 'undefined')]) {
      const answer = await unset.call('POST', PATH, { json: {}, headers: { authorization: each } });
      assertRefused(answer, 401, 'unauthorized');
    }
  });
});

describe('a Delivery', () => {
  it('makes a sent email delivered and wakes the relay for its webhooks', async () => {
    const id = await sent();
    await project(service.pool, 'sent', [{ id }]);
    const before = service.wakes();
    const answer = await report(recordOf(DELIVERY, id));
    assert.deepEqual([answer.status, answer.body], [200, {}]);
    assert.equal(service.wakes(), before + 1);
    assert.deepEqual(await timeline(id), ['delivered', 'email.queued', 'email.sent', 'email.delivered']);
  });

  it('counts once although it arrives a hundred times, concurrently and later', async () => {
    const id = await sent();
    const record = recordOf(DELIVERY, id);
    const answers = await Promise.all(Array.from({ length: 100 }, () => report(record)));
    for (const { status } of [...answers, await report(record)]) assert.equal(status, 200);
    assert.deepEqual(await timeline(id), ['delivered', 'email.queued', 'email.delivered']);
  });
});

describe('each record type changes the timeline, the status and the suppression list', () => {
  for (const [name, record, status, reason, origins] of [
    ['Open', OPEN, 'opened', null, []],
    ['Click', CLICK, 'clicked', null, []],
    ['Bounce', REFUSED, 'bounced', 'mailbox_not_found', ['bounce']],
    ['transient Bounce', MAILBOX_FULL, 'bounced', 'mailbox_full', []],
    ['Bounce for a delay', { ...BOUNCE, Type: 'Transient', Inactive: false }, 'delivery_delayed', null, []],
    ['SpamComplaint', COMPLAINT, 'complained', null, ['complaint']],
    ['SubscriptionChange', SUBSCRIPTION_CHANGE, 'sent', null, ['unsubscribe']],
  ] as const) {
    it(name, async () => {
      const to = `recipient${++count}@example.net`;
      const id = await sent({ to });
      await project(service.pool, 'sent', [{ id }]);
      assert.deepEqual(await storedCallbacksOf(recordOf(record, id, to)), []);
      const event = status === 'sent' ? 'email.unsubscribed' : `email.${status}`;
      assert.deepEqual(await timeline(id), [status, 'email.queued', 'email.sent', event]);
      assert.deepEqual(await suppressed(to), origins);
      const { error, bounce_reason } = await ours.email(id);
      assert.deepEqual([error !== null, bounce_reason], [status === 'bounced', reason]);
    });
  }

  it('F12: once, for 20 concurrent copies of each type before the hand-over is recorded', async () => {
    const to = `storm${++count}@example.net`;
    const id = await sent({ to });
    const records = [DELIVERY, OPEN, CLICK, MAILBOX_FULL, COMPLAINT].map((record) => recordOf(record, id, to));
    const copies = Array.from({ length: 20 }, () => records).flat();
    for (const { status } of await Promise.all(copies.map(report))) assert.equal(status, 200);
    await project(service.pool, 'sent', [{ id }]);
    const [status, ...events] = await timeline(id);
    assert.equal(status, 'complained');
    assert.deepEqual(events.toSorted(), [
      ...['email.bounced', 'email.clicked', 'email.complained', 'email.delivered', 'email.opened'],
      ...['email.queued', 'email.sent'],
    ]);
    assert.deepEqual(await suppressed(to), ['complaint']);
  });
});

it("a change of Postmark's suppression list adds and removes only Postmark's own entries", async () => {
  const to = `Listed${++count}@example.net`;
  const id = await sent({ to });
  const change = (fields: object) => report({ ...recordOf(SUBSCRIPTION_CHANGE, id, to), ...fields });
  const freed = { SuppressSending: false, SuppressionReason: null };
  for (let i = 0; i < 2; i++) await change({ Origin: 'Customer', MessageStream: 'outbound' });
  await change({});
  assert.deepEqual(await suppressed(to.toLowerCase()), ['provider', 'unsubscribe']);
  await change({ ...freed, MessageStream: 'outbound' });
  assert.deepEqual(await suppressed(to.toLowerCase()), ['unsubscribe']);
  await change(freed);
  assert.deepEqual(await suppressed(to.toLowerCase()), []);
  await report(recordOf(REFUSED, id, to));
  await change(freed);
  assert.deepEqual(await suppressed(to.toLowerCase()), ['bounce']);
  assert.equal((await timeline(id)).includes('email.suppressed'), false);
});

describe('a record is kept as received and changes nothing', () => {
  for (const [name, record] of Object.entries({
    'of an unknown type': { ...DELIVERY, RecordType: 'Inbound' },
    'without metadata': { ...DELIVERY, Metadata: null },
    'with text that Postgres cannot store': recordOf(DELIVERY, 'em_\0'),
    'that changes the suppression list for an unknown email': recordOf(CUSTOMER, `em_${'0'.repeat(26)}`),
    'that is not an object': [],
  })) {
    it(name, async () => assert.deepEqual(await storedCallbacksOf(record), [JSON.stringify(record)]));
  }
});

describe('a record that does not match the message of the email it names', () => {
  const MESSAGE = '11111111-2222-3333-4444-555555555555';
  /** An email that Postmark accepted as MESSAGE. */
  async function accepted(fields: object = {}): Promise<string> {
    const id = await sent(fields);
    await project(service.pool, 'sent', [{ id, provider: 'postmark', provider_message_id: MESSAGE }]);
    return id;
  }
  const unsigned = <T extends object>(record: T, email: string, recipient = RECIPIENT, fields: object = {}) => ({
    ...recordOf(record, email, recipient),
    Metadata: { email, call: 'call_1' },
    ...fields,
  });

  for (const [name, record] of Object.entries({ DELIVERY, REFUSED, COMPLAINT, SUBSCRIPTION_CHANGE, CUSTOMER })) {
    it(`${name} of another message without our signature is kept and changes nothing`, async () => {
      const to = `victim${++count}@example.net`;
      const id = await accepted({ to });
      for (const forged of [
        unsigned(record, id, to),
        unsigned(record, id, to, { Metadata: { email: id, call: 'call_1', sig: sign('em_other') } }),
        unsigned(record, id, to, { Metadata: { email: id, call: 'call_1', sig: '' } }),
      ]) {
        assert.deepEqual(await storedCallbacksOf(forged), [JSON.stringify(forged)]);
      }
      assert.deepEqual(await timeline(id), ['sent', 'email.queued', 'email.sent']);
      assert.deepEqual(await suppressed(to), []);
    });

    it(`${name} about another address than the recipients is kept and changes nothing`, async () => {
      const id = await accepted();
      const other = `other${++count}@example.net`;
      for (const forged of [recordOf(record, id, other), unsigned(record, id, other, { MessageID: MESSAGE })]) {
        assert.deepEqual(await storedCallbacksOf(forged), [JSON.stringify(forged)]);
      }
      assert.deepEqual(await timeline(id), ['sent', 'email.queued', 'email.sent']);
      assert.deepEqual(await suppressed(other), []);
    });
  }

  it('counts without a signature by the message id, as for email of earlier versions', async () => {
    const id = await accepted();
    assert.deepEqual(await storedCallbacksOf(unsigned(DELIVERY, id, RECIPIENT, { MessageID: MESSAGE })), []);
    assert.equal((await timeline(id))[0], 'delivered');
  });

  it('counts for a copy of a marketing email by the message id of the copy', async () => {
    const id = await sent({ to: ['m1@example.net', 'm2@example.net'], marketing: true });
    await service.pool.query(
      `INSERT INTO email_recipients (email_id, recipient, status, provider_message_id) VALUES ($1, 'm2@example.net', 'sent', $2)`,
      [id, MESSAGE],
    );
    assert.deepEqual(await storedCallbacksOf(unsigned(DELIVERY, id, 'm2@example.net', { MessageID: MESSAGE })), []);
    assert.equal((await timeline(id))[0], 'delivered');
  });

  it('counts for a recipient in to, cc and bcc in any spelling', async () => {
    for (const [field, to, recipient] of [
      ['to', '"<x@evil.example>" <Named@Example.net>', 'named@example.net'],
      ['cc', ' < spaced@example.net > ', 'spaced@example.net'],
      ['bcc', 'q@bücher.example', 'q@xn--bcher-kva.example'],
    ] as const) {
      const id = await accepted({ [field]: [to] });
      assert.deepEqual(await storedCallbacksOf(recordOf(DELIVERY, id, recipient)), []);
      assert.equal((await timeline(id))[0], 'delivered');
    }
  });
});

it('returns 503 while the database is down, so that Postmark retries', async (t) => {
  const pool = makePool('postgres://user@127.0.0.1:1/none', 'test', 2, () => undefined);
  const down = await startService({ pool });
  t.after(async () => {
    await down.close();
    await pool.end();
  });
  for (const json of [DELIVERY, CUSTOMER, { RecordType: 'Inbound' }]) {
    const answer = await down.call('POST', PATH, { json, headers: { authorization } });
    assertRefused(answer, 503, 'unavailable');
    assert.ok(answer.headers['retry-after']);
  }
});

describe('a malformed request returns', () => {
  const JSON_TYPE = 'application/json';
  const large = JSON.stringify({ ...DELIVERY, Content: 'x'.repeat(1_048_576) });
  const post = (raw: string, type = JSON_TYPE, path = PATH) =>
    service.call('POST', path, { raw, headers: { authorization, 'content-type': type } });

  for (const [name, code, raw, type, path] of [
    ['400 for no body', 'invalid_json', '', JSON_TYPE, PATH],
    ['400 for a body that is not JSON', 'invalid_json', '{', JSON_TYPE, PATH],
    ['413 for more than 1 MB', 'payload_too_large', large, JSON_TYPE, PATH],
    ['415 for a form', 'unsupported_media_type', 'RecordType=Delivery', 'text/plain', PATH],
    ['422 for a key that reaches an object prototype', 'validation_error', '{"a":{"__proto__":{}}}', JSON_TYPE, PATH],
    ['422 for a query parameter', 'validation_error', '{}', JSON_TYPE, `${PATH}?x=1`],
  ] as const) {
    it(name, async () => {
      const param = path === PATH ? undefined : 'x';
      assertRefused(await post(raw, type, path), Number.parseInt(name), code, param);
    });
  }

  it('413 for a chunked body of more than 1 MB', async () => {
    const { status } = await fetch(service.url + PATH, {
      method: 'POST',
      headers: { authorization, 'content-type': JSON_TYPE },
      body: new Blob([large]).stream(),
      duplex: 'half',
    });
    assert.equal(status, 413);
    assert.equal((await post(large.replace('x'.repeat(1_000), ''))).status, 200);
  });
});
