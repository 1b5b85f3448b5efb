import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../support/eventually.ts';
import { type Answer, assertRefused, inFuture, type Organization, type Service, startService } from './service.ts';
import { head, speak } from './socket.ts';

const HEADERS = ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset', 'ratelimit-policy'];
const limitsOf = ({ headers }: Answer) => HEADERS.map((name) => headers[name]);
const ask = (organization: Organization) => organization.call('GET', '/v1/emails');

function assertLimited(answer: Answer, says: string): number {
  assertRefused(answer, 429, 'rate_limit_exceeded', undefined, says);
  const wait = String(answer.headers['retry-after']);
  assert.match(wait, /^[1-9]\d*$/, 'whole seconds, one at least');
  return Number(wait);
}

/** Asks until it is refused. @returns how often it was not, and the answer that refuses it */
async function exhaust(organization: Organization): Promise<{ passed: number; refused: Answer }> {
  for (let passed = 0; ; passed++) {
    const refused = await ask(organization);
    if (refused.status === 429) return { passed, refused };
  }
}

/** What 5 a second come to in the time since `began`, which `performance.now()` gave. */
const income = (began: number) => (5 * (performance.now() - began)) / 1_000;

describe('requests a second', () => {
  let service: Service;
  before(async () => {
    service = await startService({ perSecond: { requests: 5, mails: 0 } });
  });
  after(() => service.close());

  it('are as many as were saved up, then as come in; every answer says what is left', async () => {
    const ours = await service.organization();
    const began = performance.now();
    const first = await ask(ours);
    assert.deepEqual(limitsOf(first), ['10', '9', '1', '10;w=2;comment="requests"']);
    const { passed, refused } = await exhaust(ours);
    assert.ok(passed >= 9 && passed <= 9 + income(began), `${passed} passed after the first`);
    assert.equal(assertLimited(refused, 'more than 5 requests a second; try again in 1 s'), 1);
    assert.deepEqual(limitsOf(refused).slice(0, 2), ['10', '0']);
    await sleep(1_000);
    assert.equal((await ask(ours)).status, 200, 'after Retry-After');
    await eventually('full again', async () => (await sleep(2_000), limitsOf(await ask(ours))[1] === '9'));
  });

  it('are one organization’s, of all its keys together', async () => {
    const [ours, theirs] = [await service.organization(), await service.organization()];
    const key = await ours.addKey('read_only');
    await eventually('its other key is refused', async () => {
      await exhaust(ours);
      return (await service.call('GET', '/v1/emails', { key })).status === 429;
    });
    assert.equal((await ask(theirs)).status, 200);
  });

  it('headers are on errors after authentication too, and on nothing else', async () => {
    const ours = await service.organization();
    const readOnly = await ours.addKey('read_only');
    for (const answer of [
      await ours.send({ subject: '' }),
      await ours.call('GET', '/v1/nothing'),
      await ours.call('DELETE', '/v1/emails'),
      await ours.call('POST', '/v1/emails', { raw: '{', headers: { 'content-type': 'application/json' } }),
      await service.call('POST', '/v1/emails', { key: readOnly, json: {} }),
    ]) {
      assert.ok(answer.status >= 400, answer.text);
      assert.ok(limitsOf(answer).every(Boolean), `${answer.status}: ${answer.text}`);
    }
    for (const answer of [
      await service.call('GET', '/v1/emails'),
      await service.call('GET', '/v1/emails', { key: 'x' }),
      await service.call('GET', '/healthz', { key: ours.key }),
      await service.call('GET', '/openapi.json'),
      await service.call('GET', '/nothing'),
    ]) {
      assert.deepEqual(limitsOf(answer), [undefined, undefined, undefined, undefined]);
    }
  });

  it('429 comes after 401 and 403 of the scope, and before 404, 405, 413, 415, 400, 422 and 403 of the domain', async () => {
    const ours = await service.organization();
    const readOnly = await ours.addKey('read_only');
    await exhaust(ours);
    const limited = async (what: string, asking: () => Promise<Answer>) => {
      // One may have come in meanwhile.
      const answer = await eventually(what, async () => {
        const got = await asking();
        return got.status === 429 && got;
      });
      assertLimited(answer, 'more than 5 requests a second');
    };
    const post = (raw: string, type = 'application/json') =>
      ours.call('POST', '/v1/emails', { raw, headers: { 'content-type': type } });
    assertRefused(await service.call('POST', '/v1/emails', { key: 'x' }), 401, 'unauthorized');
    assertRefused(await service.call('POST', '/v1/emails', { key: readOnly }), 403, 'insufficient_scope');
    const long = `${head('/v1/emails', ours.key, 'Content-Type: application/json', 'Content-Length: 60000000')}{`;
    await limited('413', () => speak(service.port, long));
    await limited('404', () => ours.call('GET', '/v1/nothing'));
    await limited('405', () => ours.call('DELETE', '/v1/emails'));
    await limited('415', () => post('x', 'text/plain'));
    await limited('400', () => post('{'));
    await limited('422', () => ours.send({ subject: '' }));
    await limited('403', () => ours.send({ from: 'a@nobody.example' }));
    await limited('chat-app', () => ours.call('POST', '/v1/chatapp', { json: {} }));
  });
});

describe('emails a second', () => {
  let service: Service;
  before(async () => {
    service = await startService({ perSecond: { requests: 0, mails: 5 } });
  });
  after(() => service.close());

  const sent = (organization: Organization, emails: number, more: Record<string, string> = {}) =>
    organization.call('POST', '/v1/emails/batch', {
      json: { emails: Array.from({ length: emails }, () => organization.mail()) },
      headers: more,
    });
  const remaining = async (organization: Organization) =>
    Number((await ask(organization)).headers['ratelimit-remaining']);

  it('a batch takes as many as it holds, and what is not accepted takes none', async () => {
    const ours = await service.organization();
    const began = performance.now();
    const near = (given: number, wanted: number) =>
      assert.ok(given >= wanted && given <= wanted + income(began), `${given} remain, not ${wanted}`);
    assert.deepEqual(limitsOf(await ask(ours)), ['100', '100', '0', '100;w=20;comment="emails"']);
    assert.equal((await sent(ours, 40)).status, 202);
    near(await remaining(ours), 60);
    await ours.sent();
    near(await remaining(ours), 59);
    const emails = Array.from({ length: 40 }, (_, i) => ours.mail(i === 39 ? { from: 'a@nobody.example' } : {}));
    assert.equal((await ours.call('POST', '/v1/emails/batch', { json: { emails } })).status, 403);
    assert.equal((await ours.send({ from: 'a@nobody.example' })).status, 403);
    assert.equal((await ours.send({ subject: '' })).status, 422);
    const blocked = [{ filename: 'a.exe', content: 'SGk=' }];
    assert.equal((await ours.send({ attachments: blocked })).status, 422);
    near(await remaining(ours), 59);
    assert.equal((await ours.send({ attachments: [{ filename: 'a.txt', content: 'SGk=' }] })).status, 202);
    near(await remaining(ours), 58);
  });

  it('too many are refused all together with the time when they would pass; requests go on', async () => {
    const ours = await service.organization();
    const began = performance.now();
    assert.equal((await sent(ours, 100)).status, 202);
    const refused = await sent(ours, 40);
    const wait = assertLimited(refused, 'more than 5 emails a second; try again in');
    assert.ok(wait >= (40 - income(began)) / 5 && wait <= 8, `${wait} s`);
    assert.equal(refused.headers['ratelimit-limit'], '100');
    assert.ok(Number(refused.headers['ratelimit-remaining']) <= income(began), 'less than it takes');
    assert.equal((await ask(ours)).status, 200);
    assert.equal((await ours.call('GET', '/v1/emails/batch')).text.match(/bt_/g)?.length, 1, 'nothing was stored');
    await eventually('one passes', async () => (await ours.send()).status === 202, 2_000);
  });

  it('a batch larger than can ever be saved up passes when half of that is there, and is owed', async () => {
    const ours = await service.organization();
    assert.equal((await sent(ours, 60)).status, 202);
    assertLimited(await sent(ours, 300), 'more than 5 emails a second; try again in');
    assert.equal((await sent(ours, 20)).status, 202, 'smaller ones pass meanwhile');
    const theirs = await service.organization();
    assert.equal((await sent(theirs, 1_000)).status, 202);
    const wait = assertLimited(await theirs.send(), 'more than 5 emails a second');
    assert.ok(wait > 150 && wait <= 181, `${wait} s until 900 have come in`);
  });

  it('a replay takes none, and is answered when nothing is left', async () => {
    const ours = await service.organization();
    const json = { emails: Array.from({ length: 100 }, () => ours.mail()) };
    const once = { json, headers: { 'idempotency-key': 'once' } };
    const began = performance.now();
    assert.equal((await ours.call('POST', '/v1/emails/batch', once)).status, 202);
    const replayed = await ours.call('POST', '/v1/emails/batch', once);
    assert.deepEqual([replayed.status, replayed.headers['idempotent-replayed']], [202, 'true']);
    assert.ok((await remaining(ours)) <= income(began), 'nothing was given back');
  });

  it('what is wrong with an email is told before that there are too many', async () => {
    const ours = await service.organization();
    assert.equal((await sent(ours, 1_000)).status, 202);
    assertRefused(await ours.send({ subject: '' }), 422, 'validation_error', 'subject');
    assertRefused(await ours.send({ scheduled_at: inFuture({ hours: -1 }) }), 422, 'validation_error', 'scheduled_at');
    assertRefused(await ours.send({ from: 'a@nobody.example' }), 403, 'domain_not_found', 'from');
    assertRefused(
      await ours.send({ attachments: [{ filename: 'a.exe', content: 'SGk=' }] }),
      422,
      'invalid_attachment',
      'attachments.0.filename',
    );
    const json = { emails: [ours.mail(), ours.mail({ from: 'a@nobody.example' })] };
    assertRefused(await ours.call('POST', '/v1/emails/batch', { json }), 403, 'domain_not_found', 'emails.1.from');
    const once = { headers: { 'idempotency-key': '' }, json: ours.mail() };
    assertRefused(await ours.call('POST', '/v1/emails', once), 400, 'invalid_idempotency_key');
    assertLimited(await ours.send(), 'more than 5 emails a second');
  });

  it('chat-app messages take none', async () => {
    const ours = await service.organization();
    assert.equal((await sent(ours, 1_000)).status, 202);
    await ours.call('POST', '/v1/chatapp/numbers', {
      json: { number: '+12025550188', provider: 'twilio', auth_token: 'token' },
    });
    const answer = await ours.call('POST', '/v1/chatapp', { json: { to: '+14165550123', text: 'Hi.' } });
    assert.equal(answer.status, 202, answer.text);
  });
});

describe('limits that are on together, by default, or off', () => {
  it('the defaults let 20 batches of 10,000 through in a minute', async () => {
    const { SETTINGS } = await import('../../src/settings.ts');
    const { startRateLimits } = await import('../../src/intake/rate-limits.ts');
    const perSecond = {
      requests: Number(SETTINGS.RATE_LIMIT_RPS.fallback),
      mails: Number(SETTINGS.RATE_LIMIT_MAILS_PER_SECOND.fallback),
    };
    const service = await startService();
    const limits = startRateLimits(service.pool, perSecond, () => undefined);
    for (let i = 0; i < 20; i++) limits.mails?.take('org_x', 10_000);
    assert.throws(() => limits.mails?.take('org_x', 10_000), { code: 'rate_limit_exceeded', retryAfterSeconds: 1 });
    await limits.stop();
    await service.close();
  });

  it('an answer tells of requests, and of emails where those were too many', async (t) => {
    const service = await startService({ perSecond: { requests: 100, mails: 5 } });
    t.after(() => service.close());
    const ours = await service.organization();
    const policy = '200;w=2;comment="requests", 100;w=20;comment="emails"';
    const json = { emails: Array.from({ length: 400 }, () => ours.mail()) };
    const accepted = await ours.call('POST', '/v1/emails/batch', { json });
    assert.deepEqual([accepted.status, ...limitsOf(accepted)], [202, '200', '199', '1', policy]);
    const refused = await ours.send();
    assertLimited(refused, 'more than 5 emails a second');
    assert.deepEqual([limitsOf(refused)[0], limitsOf(refused)[1], limitsOf(refused)[3]], ['100', '0', policy]);
  });

  it('off is off: no headers', async (t) => {
    const service = await startService({ perSecond: { requests: 0, mails: 0 } });
    t.after(() => service.close());
    const ours = await service.organization();
    const answers = [];
    for (let i = 0; i < 30; i++) answers.push(await ours.send());
    for (const answer of answers) {
      assert.deepEqual([answer.status, ...limitsOf(answer)], [202, undefined, undefined, undefined, undefined]);
    }
  });
});
