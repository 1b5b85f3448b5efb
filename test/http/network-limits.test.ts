import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { QueryConfig } from 'pg';
import { makeNetworkLimits } from '../../src/intake/network-limits.ts';
import { parseRanges } from '../../src/lib/ip-ranges.ts';
import { signedIn, visitor } from '../dashboard/visitor.ts';
import { acceptText, connect } from '../store/chats.ts';
import { type Answer, assertRefused, POSTMARK_AUTHORIZATION, startService, useService } from './service.ts';

/** Requests per second and per burst, which is the time of 5 seconds. */
const PER_SECOND = 1;
const BURST = 5;
const TWILIO = { 'x-twilio-signature': `${'A'.repeat(27)}=` };
const META = { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` };

const service = await useService({
  networks: makeNetworkLimits(PER_SECOND),
  trustedProxies: parseRanges(['127.0.0.1']),
  publicUrl: 'http://mail.example',
});
const org = await service.organization();
let networks = 0;
const newNetwork = (): string => `203.0.113.${++networks}`;

type Ask = (address: string) => Promise<Answer>;
/** Sends requests until one is refused for the limit. @returns the answers before that */
async function exhaust(ask: Ask, address: string): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let i = 0; i < 100; i++) {
    const answer = await ask(address);
    if (answer.status === 429) {
      assertRefused(answer, 429, 'rate_limit_exceeded');
      assert.ok(Number(answer.headers['retry-after']) >= 1);
      return answers;
    }
    answers.push(answer);
  }
  return assert.fail('no request is refused');
}
const call =
  (method: string, path: string, headers: Record<string, string> = {}, raw?: string): Ask =>
  (address) =>
    service.call(method, path, { headers: { ...headers, 'x-forwarded-for': address }, ...(raw && { raw }) });

const CALLBACK_PATH = `/callbacks/twilio?m=wa_${'0'.repeat(26)}`;
const META_VERIFICATION = '/callbacks/meta?hub.mode=subscribe&hub.verify_token=wrong&hub.challenge=1';
const unknownKey = call('GET', '/v1/emails', { authorization: `Bearer sw_live_${'0'.repeat(26)}_${'a'.repeat(64)}` });

describe('the limit of a network', () => {
  for (const [what, ask, status] of [
    ['GET of unsubscribe links', call('GET', '/unsubscribe/x'), 404],
    ['POST of unsubscribe links', call('POST', '/unsubscribe/x'), 404],
    ['callbacks with a wrong signature of Twilio', call('POST', CALLBACK_PATH, TWILIO, 'a=b'), 401],
    ['callbacks with a malformed signature of Twilio', call('POST', CALLBACK_PATH, {}, 'a=b'), 401],
    ['callbacks with a wrong signature of Meta', call('POST', '/callbacks/meta', META, '{}'), 401],
    ['verification requests of Meta with a wrong token', call('GET', META_VERIFICATION), 401],
    ['callbacks with a wrong password of Postmark', call('POST', '/callbacks/postmark', {}, '{}'), 401],
    ['unknown API keys', unknownKey, 401],
  ] as const) {
    it(`refuses ${what} beyond it with 429 and Retry-After, and no other network`, async () => {
      const [one, other] = [newNetwork(), newNetwork()];
      const answers = await exhaust(ask, one);
      assert.ok(answers.length >= BURST, `${answers.length} were answered`);
      for (const answer of answers) assert.equal(answer.status, status, answer.text);
      assert.equal((await ask(other)).status, status);
    });
  }

  it('is shared by all addresses of an IPv6 /64', async () => {
    const ask = call('GET', '/unsubscribe/x');
    await exhaust((prefix) => ask(`${prefix}${Math.floor(Math.random() * 65_535).toString(16)}`), '2001:db8:1:2::');
    assert.equal((await ask('2001:db8:1:3::1')).status, 404);
  });

  it('does not apply to valid credentials: a known API key, callbacks of Postmark', async () => {
    const address = newNetwork();
    assert.equal((await org.call('GET', '/v1/emails')).status, 200);
    await exhaust(unknownKey, address);
    const headers = { 'x-forwarded-for': address };
    for (let i = 0; i < 20; i++) {
      assert.equal((await org.call('GET', '/v1/emails', { headers })).status, 200);
      const posted = {
        json: { RecordType: 'Unknown' },
        headers: { ...headers, authorization: POSTMARK_AUTHORIZATION },
      };
      assert.equal((await service.call('POST', '/callbacks/postmark', posted)).status, 200);
    }
  });

  it('is checked before an unsigned callback costs a database query', async (t) => {
    const { number } = await connect(service.pool, org.id);
    const id = await acceptText(service.pool, org.id, number);
    const ask = call('POST', `/callbacks/twilio?m=${id}`, TWILIO, 'a=b');
    const queries = t.mock.method(service.pool, 'query');
    const answers = await exhaust(ask, newNetwork());
    const lookups = queries.mock.calls.filter(({ arguments: [statement] }) =>
      /chat/.test((statement as unknown as QueryConfig).text),
    );
    assert.equal(lookups.length, answers.length, 'all but the refused request');
  });

  it('refuses pages of the dashboard without a session, and none with one that this process knows', async () => {
    const headers = { 'x-forwarded-for': newNetwork() };
    const member = await signedIn(service, org.id, 'owner');
    assert.equal((await member.get('/dashboard')).status, 200);
    const anonymous = visitor(service);
    let page = await anonymous.get('/dashboard/invitations/x', headers);
    for (let i = 0; i < 100 && page.status === 404; i++)
      page = await anonymous.get('/dashboard/invitations/x', headers);
    assert.equal(page.status, 429);
    assert.ok(Number(page.headers['retry-after']) >= 1);
    anonymous.take(`sendwright=${'a'.repeat(43)}`);
    assert.equal((await anonymous.get('/dashboard', headers)).status, 429, 'a cookie without a session');
    for (let i = 0; i < 20; i++) assert.equal((await member.get('/dashboard', headers)).status, 200);
  });
});

it('GET /readyz queries the database once a second, however often it is called', async (t) => {
  const other = await startService();
  t.after(() => other.close());
  const queries = t.mock.method(other.pool, 'query');
  let now = performance.now();
  t.mock.method(performance, 'now', () => now);
  for (const expected of [1, 2]) {
    const answers = await Promise.all(Array.from({ length: 100 }, () => other.call('GET', '/readyz')));
    assert.ok(answers.every(({ status }) => status === 200));
    const lookups = queries.mock.calls.filter(({ arguments: [text] }) => /to_regclass/.test(text));
    assert.equal(lookups.length, expected);
    now += 1_001;
  }
});

it('Strict-Transport-Security is in every answer if PUBLIC_URL is https, and in none if it is http', async (t) => {
  const https = await startService({ publicUrl: 'https://mail.example' });
  t.after(() => https.close());
  for (const path of ['/healthz', '/v1/emails', '/unsubscribe/x', '/dashboard/sign-in', '/nowhere']) {
    const { headers } = path.startsWith('/dashboard') ? await visitor(https).get(path) : await https.call('GET', path);
    assert.equal(headers['strict-transport-security'], 'max-age=31536000', path);
  }
  const { headers } = await service.call('GET', '/healthz');
  assert.equal(headers['strict-transport-security'], undefined);
});
