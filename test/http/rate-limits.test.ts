import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../support/eventually.ts';
import { connectNumber } from './resources.ts';
import { type Answer, assertRefused, inFuture, type Organization, useService } from './service.ts';
import { head, sendBytes } from './socket.ts';

const HEADERS = ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset', 'ratelimit-policy'];
const limitsOf = ({ headers }: Answer) => HEADERS.map((name) => headers[name]);
const NO_HEADERS = [undefined, undefined, undefined, undefined];
const list = (organization: Organization) => organization.call('GET', '/v1/emails');
const emails = (organization: Organization, count: number) => Array.from({ length: count }, () => organization.mail());
const sendBatch = (organization: Organization, count: number) =>
  organization.call('POST', '/v1/emails/batch', { json: { emails: emails(organization, count) } });

/** @returns the seconds of Retry-After */
function assertLimited(answer: Answer, message: string): number {
  assertRefused(answer, 429, 'rate_limit_exceeded', undefined, message);
  const wait = String(answer.headers['retry-after']);
  assert.match(wait, /^[1-9]\d*$/);
  return Number(wait);
}

/** Sends requests until one is refused. @returns the number of the others, and the refusal */
async function exhaust(organization: Organization): Promise<{ passed: number; refused: Answer }> {
  for (let passed = 0; ; passed++) {
    const refused = await list(organization);
    if (refused.status === 429) return { passed, refused };
  }
}

/** Tokens that were added since `start`, a value of `performance.now()`. */
const added = (start: number) => (5 * (performance.now() - start)) / 1_000;

const requestLimited = await useService({ perSecond: { requests: 5, mails: 0 } });
const emailLimited = await useService({ perSecond: { requests: 0, mails: 5 } });
const bothLimited = await useService({ perSecond: { requests: 100, mails: 5 } });
const domainLimited = await useService({ perSecond: { requests: 100, mails: 0, domains: 0.01 } });
const unlimited = await useService({ perSecond: { requests: 0, mails: 0 } });

describe('a limit of 5 requests a second', () => {
  const TOO_MANY = 'more than 5 requests a second';
  const { call, port, organization } = requestLimited;

  it('lets a burst of 10 pass, then returns 429 with Retry-After; each answer has the remaining number', async () => {
    const ours = await organization();
    const start = performance.now();
    const first = await list(ours);
    assert.deepEqual(limitsOf(first), ['10', '9', '1', '10;w=2;comment="requests"']);
    const { passed, refused } = await exhaust(ours);
    assert.ok(passed >= 9 && passed <= 9 + added(start), `${passed} passed after the first`);
    assert.equal(assertLimited(refused, `${TOO_MANY}; try again in 1 s`), 1);
    assert.deepEqual(limitsOf(refused).slice(0, 2), ['10', '0']);
    await sleep(1_000);
    assert.equal((await list(ours)).status, 200, 'after Retry-After');
  });

  it('counts the requests of all keys of an organization, and of no other', async () => {
    const [ours, theirs] = [await organization(), await organization()];
    const key = await ours.addKey('read_only');
    await eventually('its other key is refused', async () => {
      await exhaust(ours);
      return (await call('GET', '/v1/emails', { key })).status === 429;
    });
    assert.equal((await list(theirs)).status, 200);
  });

  it('is reported in every authenticated answer, errors included, and in no other', async () => {
    const ours = await organization();
    const key = await ours.addKey('read_only');
    for (const answer of [
      await ours.send({ subject: '' }),
      await ours.call('GET', '/v1/nothing'),
      await call('POST', '/v1/emails', { key, json: {} }),
    ]) {
      assert.ok(answer.status >= 400, answer.text);
      assert.ok(limitsOf(answer).every(Boolean), `${answer.status}: ${answer.text}`);
    }
    assert.deepEqual(limitsOf(await call('GET', '/v1/emails', { key: 'x' })), NO_HEADERS);
    assert.deepEqual(limitsOf(await call('GET', '/healthz', { key: ours.key })), NO_HEADERS);
  });

  it('returns 429 after 401 and 403 for the scope, and before any other error', async () => {
    const ours = await organization();
    const readOnly = await ours.addKey('read_only');
    await exhaust(ours);
    const post = (raw: string, type = 'application/json') =>
      ours.call('POST', '/v1/emails', { raw, headers: { 'content-type': type } });
    assertRefused(await call('POST', '/v1/emails', { key: 'x' }), 401, 'unauthorized');
    assertRefused(await call('POST', '/v1/emails', { key: readOnly }), 403, 'insufficient_scope');
    const long = `${head('/v1/emails', ours.key, 'Content-Type: application/json', 'Content-Length: 60000000')}{`;
    for (const [otherwise, request] of [
      ['413', () => sendBytes(port, long)],
      ['404', () => ours.call('GET', '/v1/nothing')],
      ['415', () => post('x', 'text/plain')],
      ['400', () => post('{')],
      ['422', () => ours.send({ subject: '' })],
      ['chat-app 422', () => ours.call('POST', '/v1/chatapp', { json: {} })],
    ] as const) {
      // A token may have been added meanwhile.
      const answer = await eventually(otherwise, async () => {
        const got = await request();
        return got.status === 429 && got;
      });
      assertLimited(answer, TOO_MANY);
    }
  });
});

describe('a limit of 5 emails a second', () => {
  const TOO_MANY = 'more than 5 emails a second';
  const { organization } = emailLimited;

  it('counts accepted emails only, each of a batch', async () => {
    const ours = await organization();
    const start = performance.now();
    const assertRemaining = async (expected: number) => {
      const remaining = Number((await list(ours)).headers['ratelimit-remaining']);
      assert.ok(remaining >= expected && remaining <= expected + added(start), `${remaining} remain, not ${expected}`);
    };
    const assertStatus = async (status: number, answer: Promise<Answer>) => assert.equal((await answer).status, status);
    const withFile = (filename: string) => ours.send({ attachments: [{ filename, content: 'SGk=' }] });
    assert.deepEqual(limitsOf(await list(ours)), ['100', '100', '0', '100;w=20;comment="emails"']);
    await assertStatus(202, sendBatch(ours, 40));
    await assertRemaining(60);
    await ours.sent();
    await assertRemaining(59);
    const invalid = [...emails(ours, 39), ours.mail({ from: 'a@unregistered.example' })];
    await assertStatus(403, ours.call('POST', '/v1/emails/batch', { json: { emails: invalid } }));
    // As many as are not added meanwhile.
    await Promise.all(
      Array.from({ length: 30 }, () => assertStatus(403, ours.send({ from: 'a@unregistered.example' }))),
    );
    await assertStatus(422, ours.send({ subject: '' }));
    await assertStatus(422, withFile('a.exe'));
    await assertRemaining(59);
    await assertStatus(202, withFile('a.txt'));
    await assertRemaining(58);
  });

  it('refuses a batch until all its emails fit, stores none of them, and limits no other request', async () => {
    const ours = await organization();
    const start = performance.now();
    assert.equal((await sendBatch(ours, 100)).status, 202);
    const refused = await sendBatch(ours, 40);
    const wait = assertLimited(refused, `${TOO_MANY}; try again in`);
    assert.ok(wait >= (40 - added(start)) / 5 && wait <= 8, `${wait} s`);
    assert.equal(refused.headers['ratelimit-limit'], '100');
    assert.equal((await list(ours)).status, 200);
    assert.equal((await ours.call('GET', '/v1/emails/batch')).text.match(/bt_/g)?.length, 1);
    await eventually('one passes', async () => (await ours.send()).status === 202);
  });

  it('accepts a batch over the burst when half of the burst is available, and deducts it from later ones', async () => {
    const [ours, theirs] = [await organization(), await organization()];
    assert.equal((await sendBatch(ours, 80)).status, 202);
    assertLimited(await sendBatch(ours, 300), TOO_MANY);
    assert.equal((await sendBatch(ours, 20)).status, 202, 'smaller ones pass meanwhile');
    assert.equal((await sendBatch(theirs, 1_000)).status, 202);
    const wait = assertLimited(await theirs.send(), TOO_MANY);
    assert.ok(wait > 150 && wait <= 181, `${wait} s`);
  });

  it('does not count a replay, which is also returned when no token is left', async () => {
    const ours = await organization();
    const start = performance.now();
    const request = { json: { emails: emails(ours, 100) }, headers: { 'idempotency-key': 'first' } };
    assert.equal((await ours.call('POST', '/v1/emails/batch', request)).status, 202);
    const replayed = await ours.call('POST', '/v1/emails/batch', request);
    assert.deepEqual([replayed.status, replayed.headers['idempotent-replayed']], [202, 'true']);
    const remaining = Number((await list(ours)).headers['ratelimit-remaining']);
    assert.ok(remaining <= added(start), `${remaining} remain`);
  });

  it('returns 429 after every other error, and does not limit chat-app messages', async () => {
    const ours = await organization();
    const { number: from } = await connectNumber(ours);
    assert.equal((await sendBatch(ours, 1_000)).status, 202);
    const past = inFuture({ hours: -1 });
    const attachments = [{ filename: 'a.exe', content: 'SGk=' }];
    assertRefused(await ours.send({ scheduled_at: past }), 422, 'validation_error', 'scheduled_at');
    assertRefused(await ours.send({ from: 'a@unregistered.example' }), 403, 'domain_not_found', 'from');
    assertRefused(await ours.send({ attachments }), 422, 'invalid_attachment', 'attachments.0.filename');
    const json = { emails: [ours.mail(), ours.mail({ from: 'a@unregistered.example' })] };
    assertRefused(await ours.call('POST', '/v1/emails/batch', { json }), 403, 'domain_not_found', 'emails.1.from');
    assertLimited(await ours.send(), TOO_MANY);
    const chat = await ours.call('POST', '/v1/chatapp', { json: { from, to: '+14165550123', text: 'Hi.' } });
    assert.equal(chat.status, 202, chat.text);
  });
});

it('with both limits a response reports the limit of requests, or that of emails if it refused', async () => {
  const ours = await bothLimited.organization();
  const policy = '200;w=2;comment="requests", 100;w=20;comment="emails"';
  const accepted = await sendBatch(ours, 400);
  assert.deepEqual([accepted.status, ...limitsOf(accepted)], [202, '200', '199', '1', policy]);
  const refused = await ours.send();
  assertLimited(refused, 'more than 5 emails a second');
  assert.deepEqual([limitsOf(refused)[0], limitsOf(refused)[1], limitsOf(refused)[3]], ['100', '0', policy]);
});

it('a response that refuses a domain reports the limit of requests', async () => {
  const ours = await domainLimited.organization();
  const register = () => ours.call('POST', '/v1/domains', { json: { name: 'limited.example' } });
  assert.equal((await register()).status, 201);
  const refused = await register();
  assertLimited(refused, 'more than 0.01 domain registrations and checks a second');
  assert.deepEqual([limitsOf(refused)[0], limitsOf(refused)[3]], ['200', '200;w=2;comment="requests"']);
  assert.ok(Number(refused.headers['ratelimit-remaining']) > 0);
});

it('without limits no answer has the headers', async () => {
  const ours = await unlimited.organization();
  for (let i = 0; i < 30; i++) {
    const answer = await ours.send();
    assert.deepEqual([answer.status, ...limitsOf(answer)], [202, ...NO_HEADERS]);
  }
});
