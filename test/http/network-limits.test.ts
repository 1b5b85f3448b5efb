import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { makeNetworkLimits } from '../../src/intake/network-limits.ts';
import { parseRanges } from '../../src/lib/ip-ranges.ts';
import { signedIn, visitor } from '../dashboard/visitor.ts';
import { acceptText, connect } from '../store/chats.ts';
import { type Answer, assertRefused, CALLBACK, type Organization, type Service, startService } from './service.ts';

/** So slow that nothing flows back during a test that matters to it. */
const PER_SECOND = 1;
/** What a network may save up. */
const BURST = 5;
const TWILIO = { 'x-twilio-signature': `${'A'.repeat(27)}=` };
const META = { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` };

describe('the limit of a network', () => {
  let service: Service;
  let org: Organization;
  let networks = 0;
  before(async () => {
    service = await startService({
      networks: makeNetworkLimits(PER_SECOND),
      trustedProxies: parseRanges(['127.0.0.1']),
      publicUrl: 'http://mail.example',
    });
    org = await service.organization();
  });
  after(() => service.close());

  const newNetwork = (): string => `203.0.113.${++networks}`;
  type Ask = (address: string) => Promise<Answer>;
  /** Asks until it is refused for the limit. @returns the answers before that */
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
    return assert.fail('it is never refused');
  }
  const call =
    (method: string, path: string, headers: Record<string, string> = {}, raw?: string): Ask =>
    (address) =>
      service.call(method, path, { headers: { ...headers, 'x-forwarded-for': address }, ...(raw && { raw }) });

  const callback = `/callbacks/twilio?m=wa_${'0'.repeat(26)}`;
  const unknownKey = { authorization: `Bearer sw_live_${'0'.repeat(26)}_${'a'.repeat(64)}` };
  for (const [what, ask, status] of [
    ['GET of unsubscribe links', call('GET', '/unsubscribe/x'), 404],
    ['POST of unsubscribe links', call('POST', '/unsubscribe/x'), 404],
    ['callbacks that Twilio has not signed', call('POST', callback, TWILIO, 'a=b'), 401],
    ['callbacks with a malformed signature of Twilio', call('POST', callback, {}, 'a=b'), 401],
    ['callbacks that Meta has not signed', call('POST', '/callbacks/meta', META, '{}'), 401],
    ['callbacks with a wrong password of Postmark', call('POST', '/callbacks/postmark', {}, '{}'), 401],
    ['unknown API keys', call('GET', '/v1/emails', unknownKey), 401],
  ] as const) {
    it(`refuses ${what} beyond it with 429 and Retry-After, and no other network`, async () => {
      const [one, other] = [newNetwork(), newNetwork()];
      const answers = await exhaust(ask, one);
      assert.ok(answers.length >= BURST, `${answers.length} were answered`);
      for (const answer of answers) assert.equal(answer.status, status, answer.text);
      assert.equal((await ask(other)).status, status);
    });
  }

  it('is one for all addresses of an IPv6 /64', async () => {
    const ask = call('GET', '/unsubscribe/x');
    await exhaust((prefix) => ask(`${prefix}${Math.floor(Math.random() * 65_535).toString(16)}`), '2001:db8:1:2::');
    assert.equal((await ask('2001:db8:1:3::1')).status, 404);
  });

  it('does not hold for valid credentials: a known API key, callbacks of Postmark', async () => {
    const address = newNetwork();
    assert.equal((await org.call('GET', '/v1/emails')).status, 200);
    await exhaust(call('GET', '/v1/emails', unknownKey), address);
    const headers = { 'x-forwarded-for': address };
    for (let i = 0; i < 20; i++) assert.equal((await org.call('GET', '/v1/emails', { headers })).status, 200);
    const basic = `Basic ${Buffer.from(`${CALLBACK.user}:${CALLBACK.password}`).toString('base64')}`;
    for (let i = 0; i < 20; i++) {
      const posted = { json: { RecordType: 'Unknown' }, headers: { ...headers, authorization: basic } };
      assert.equal((await service.call('POST', '/callbacks/postmark', posted)).status, 200);
    }
  });

  it('costs a database query for no unsigned callback beyond it', async (t) => {
    const { number } = await connect(service.pool, org.id);
    const id = await acceptText(service.pool, org.id, number);
    const ask = call('POST', `/callbacks/twilio?m=${id}`, TWILIO, 'a=b');
    const address = newNetwork();
    await exhaust(ask, address);
    const queries = t.mock.method(service.pool, 'query');
    const before = queries.mock.callCount();
    for (let i = 0; i < 3; i++) await ask(address);
    const asked = queries.mock.calls.slice(before).filter(({ arguments: [text] }) => /chat/.test(text));
    assert.deepEqual(asked, []);
  });

  it('refuses pages of the dashboard without a session, and none with one', async () => {
    const headers = { 'x-forwarded-for': newNetwork() };
    const member = await signedIn(service, org.id, 'owner');
    assert.equal((await member.get('/dashboard')).status, 200);
    const stranger = visitor(service);
    let shown = await stranger.get('/dashboard/invitations/x', headers);
    for (let i = 0; i < 100 && shown.status !== 429; i++) {
      assert.equal(shown.status, 404);
      shown = await stranger.get('/dashboard/invitations/x', headers);
    }
    assert.equal(shown.status, 429);
    assert.ok(Number(shown.headers['retry-after']) >= 1);
    stranger.take(`sendwright=${'a'.repeat(43)}`);
    assert.equal((await stranger.get('/dashboard', headers)).status, 429, 'a cookie that is no session');
    for (let i = 0; i < 20; i++) assert.equal((await member.get('/dashboard', headers)).status, 200);
  });

  it('is off with 0', async () => {
    const limits = makeNetworkLimits(0);
    for (let i = 0; i < 10_000; i++) {
      limits.take('192.0.2.1');
      limits.countFailure('192.0.2.1');
    }
    limits.check('192.0.2.1');
  });
});

describe('GET /readyz', () => {
  it('asks the database at most once a second, however often it is called', async (t) => {
    const service = await startService();
    t.after(() => service.close());
    const queries = t.mock.method(service.pool, 'query');
    const CALLS = 200;
    const began = performance.now();
    const answers = await Promise.all(Array.from({ length: CALLS }, () => service.call('GET', '/readyz')));
    const seconds = Math.ceil((performance.now() - began) / 1_000);
    assert.ok(answers.every(({ status }) => status === 200));
    const looks = queries.mock.calls.filter(({ arguments: [text] }) => /to_regclass/.test(text)).length;
    assert.ok(looks >= 1 && looks <= seconds + 1, `${looks} in ${seconds} s`);
  });
});

describe('Strict-Transport-Security', () => {
  it('is sent with every answer when PUBLIC_URL is https', async (t) => {
    const service = await startService({ publicUrl: 'https://mail.example' });
    t.after(() => service.close());
    for (const path of ['/healthz', '/v1/emails', '/unsubscribe/x', '/dashboard/sign-in', '/nowhere']) {
      const { headers } = path.startsWith('/dashboard')
        ? await visitor(service).get(path)
        : await service.call('GET', path);
      assert.equal(headers['strict-transport-security'], 'max-age=31536000', path);
    }
  });

  it('is not sent when it is http', async (t) => {
    const service = await startService({ publicUrl: 'http://mail.example' });
    t.after(() => service.close());
    const { headers } = await service.call('GET', '/healthz');
    assert.equal(headers['strict-transport-security'], undefined);
  });
});
