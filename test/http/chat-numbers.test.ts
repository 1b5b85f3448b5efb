import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chatSeal } from '../../src/accounts/chat-numbers.ts';
import { allPages, assertRefused, bodyOf, SECRET_KEY, TIMESTAMP, useService } from './service.ts';

type Json = Record<string, unknown>;
const ABSENT = `num_${'0'.repeat(26)}`;
const ACCOUNT = `AC${'a1'.repeat(16)}`;
const CONTENT = `HX${'b2'.repeat(16)}`;
const TOKEN = 'a-token-that-is-never-shown';

const service = await useService();
const ours = await service.organization();

let count = 0;
const fresh = () => `+1202555${String(++count).padStart(4, '0')}`;
const post = (json: Json, by = ours) => by.call('POST', '/v1/chatapp/numbers', { json });
const OWN = { provider: 'twilio', account_sid: ACCOUNT, auth_token: TOKEN };
const connect = async (json: Json = {}, by = ours) =>
  bodyOf<Json & { id: string; number: string }>(await post({ number: fresh(), ...OWN, ...json }, by), 201);

const TEMPLATE = { name: 'receipt', language: 'en_US', content_sid: CONTENT, variables: ['1', 'name'] };
const SMALLEST = { provider: 'twilio', phone_number_id: null, account_sid: null, own_token: true, templates: [] };

describe('POST /v1/chatapp/numbers', () => {
  const { provider, ...account } = OWN;
  for (const [name, given, shown] of [
    ['Twilio with the account of the settings and another token', { provider, auth_token: TOKEN }, {}],
    [
      'Twilio with its own account and templates',
      { provider, ...account, templates: [TEMPLATE, { ...TEMPLATE, language: 'de', variables: null }] },
      { account_sid: ACCOUNT, templates: [{ ...TEMPLATE, language: 'de', variables: [] }, TEMPLATE] },
    ],
    [
      'Meta with its own token',
      { provider: 'meta', phone_number_id: '106540352242922', access_token: TOKEN },
      { provider: 'meta', phone_number_id: '106540352242922' },
    ],
  ] as const) {
    it(`connects a number: ${name}`, async () => {
      const answer = await post({ number: fresh(), ...given });
      const { id, number, created_at, ...rest } = bodyOf<Json & { id: string }>(answer, 201);
      assert.match(id, /^num_[0-9a-z]{26}$/);
      assert.match(String(created_at), TIMESTAMP);
      const inOrder = { ...rest, templates: (rest['templates'] as { language: string }[]).sort(byLanguage) };
      assert.deepEqual(inOrder, { ...SMALLEST, ...shown });
      const got = await ours.call('GET', `/v1/chatapp/numbers/${id}`);
      assert.deepEqual(bodyOf(got, 200), { id, number, created_at, ...inOrder });
      for (const { text } of [answer, got]) assert.ok(!text.includes(TOKEN), text);
      assert.equal(await storedToken(id), TOKEN);
    });
  }

  const byLanguage = (a: { language: string }, b: { language: string }) => (a.language < b.language ? -1 : 1);

  /** Opens the sealed token of a number. */
  async function storedToken(id: string): Promise<string | null> {
    const { rows } = await service.pool.query<{ credentials: Buffer | null }>(
      'SELECT credentials FROM chat_numbers WHERE id = $1',
      [id],
    );
    const sealed = rows[0]?.credentials;
    if (!sealed) return null;
    assert.ok(!sealed.includes(TOKEN));
    const seal = chatSeal(SECRET_KEY);
    assert.throws(() => seal.open(sealed, ABSENT));
    return seal.open(sealed, id).toString();
  }

  it('returns 409 for a number that any organization has connected, until it is disconnected', async () => {
    const { id, number } = await connect();
    const theirs = await service.organization();
    for (const by of [ours, theirs]) {
      const answer = await post({ ...OWN, number: number.replace('+1', '+1 ') }, by);
      assertRefused(answer, 409, 'conflict', 'number', 'is connected already');
    }
    assert.equal((await ours.call('DELETE', `/v1/chatapp/numbers/${id}`)).status, 204);
    assert.equal((await connect({ number }, theirs)).number, number);
  });

  const meta = { provider: 'meta', phone_number_id: '1' };
  for (const [json, param] of [
    [{ number: '12025550142' }, 'number'],
    [{ provider: 'vonage' }, 'provider'],
    [{ provider: 'meta' }, 'phone_number_id'],
    [{ ...meta, phone_number_id: '1/2' }, 'phone_number_id'],
    [{ ...meta, auth_token: TOKEN }, 'auth_token'],
    [{ ...meta, templates: [] }, 'templates'],
    [{ phone_number_id: '1' }, 'phone_number_id'],
    [{ account_sid: ACCOUNT }, 'auth_token'],
    [{ account_sid: 'AC1', auth_token: TOKEN }, 'account_sid'],
    [{ templates: [{ ...TEMPLATE, content_sid: 'HX1' }] }, 'templates.0.content_sid'],
    [{ templates: [TEMPLATE, TEMPLATE] }, 'templates.1.name'],
    [{}, 'auth_token'],
    [{ ...meta, access_token: null }, 'access_token'],
  ] as [Json, string][]) {
    it(`422 at ${param}: ${JSON.stringify(json).slice(0, 80)}`, async () => {
      assertRefused(await post({ number: fresh(), provider: 'twilio', ...json }), 422, 'validation_error', param);
    });
  }
});

describe('GET /v1/chatapp/numbers', () => {
  it('lists numbers latest first, in pages, without tokens and templates', async () => {
    const theirs = await service.organization();
    const made: unknown[] = [];
    for (let i = 0; i < 3; i++) {
      const { templates, ...number } = await connect({ auth_token: TOKEN, templates: [TEMPLATE] }, theirs);
      assert.deepEqual(templates, [TEMPLATE]);
      made.unshift(number);
    }
    assert.deepEqual(await allPages(theirs, '/v1/chatapp/numbers', 2), made);
  });
});

describe('DELETE /v1/chatapp/numbers/:id', () => {
  it('deletes a number, its token and its templates, and keeps its messages', async () => {
    const org = await service.organization();
    const { id, number } = await connect({ auth_token: TOKEN, templates: [TEMPLATE] }, org);
    const sent = await org.call('POST', '/v1/chatapp', { json: { to: '+14165550123', text: 'Hi.' } });
    const gone = await org.call('DELETE', `/v1/chatapp/numbers/${id}`);
    assert.deepEqual([gone.status, gone.text], [204, '']);
    for (const method of ['GET', 'DELETE']) {
      assertRefused(await org.call(method, `/v1/chatapp/numbers/${id}`), 404, 'not_found');
    }
    const { rowCount } = await service.pool.query('SELECT FROM chat_templates WHERE number_id = $1', [id]);
    assert.equal(rowCount, 0);
    const { id: message } = bodyOf<{ id: string }>(sent, 202);
    assert.equal(bodyOf(await org.call('GET', `/v1/chatapp/${message}`), 200)['from'], number);
    const json = { to: '+14165550123', text: 'Hi.' };
    assertRefused(await org.call('POST', '/v1/chatapp', { json }), 422, 'no_chatapp_account');
  });
});
