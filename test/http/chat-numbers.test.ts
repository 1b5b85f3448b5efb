import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { chatSeal } from '../../src/accounts/chat-numbers.ts';
import {
  type Answer,
  assertRefused,
  type Organization,
  SECRET_KEY,
  type Service,
  startService,
  TIMESTAMP,
} from './service.ts';

type Json = Record<string, unknown>;
const ABSENT = `num_${'0'.repeat(26)}`;
const ACCOUNT = `AC${'a1'.repeat(16)}`;
const CONTENT = `HX${'b2'.repeat(16)}`;
const TOKEN = 'a-token-that-nobody-may-see';

let service: Service;
let ours: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
});
after(() => service.close());

let count = 0;
const fresh = () => `+1202555${String(++count).padStart(4, '0')}`;
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the test knows what it is given
const body = <T = Json>(answer: Answer, status: number): T => {
  assert.equal(answer.status, status, answer.text);
  return answer.body as T;
};
const post = (json: Json, by = ours) => by.call('POST', '/v1/chatapp/numbers', { json });
const OWN = { provider: 'twilio', account_sid: ACCOUNT, auth_token: TOKEN };
const connect = async (json: Json = {}, by = ours) =>
  body<Json & { id: string; number: string }>(await post({ number: fresh(), ...OWN, ...json }, by), 201);

const TEMPLATE = { name: 'receipt', language: 'en_US', content_sid: CONTENT, variables: ['1', 'name'] };
const SMALLEST = { phone_number_id: null, account_sid: null, own_token: false, templates: [] };

describe('POST /v1/chatapp/numbers', () => {
  for (const [what, given, shown, token] of [
    ['Twilio with the settings’ account and another token', { auth_token: TOKEN }, { own_token: true }, TOKEN],
    [
      'Twilio with an account of its own and templates',
      {
        account_sid: ACCOUNT,
        auth_token: TOKEN,
        templates: [TEMPLATE, { ...TEMPLATE, language: 'de', variables: null }],
      },
      { account_sid: ACCOUNT, own_token: true, templates: [{ ...TEMPLATE, language: 'de', variables: [] }, TEMPLATE] },
      TOKEN,
    ],
    [
      'Meta with a token of its own',
      { provider: 'meta', phone_number_id: '106540352242922', access_token: TOKEN },
      { provider: 'meta', phone_number_id: '106540352242922', own_token: true },
      TOKEN,
    ],
  ] as const) {
    it(`connects a number: ${what}`, async () => {
      const answer = await post({ number: fresh(), provider: 'twilio', ...given });
      const made = body<Json & { id: string }>(answer, 201);
      const { id, number, created_at, ...rest } = made;
      assert.match(id, /^num_[0-9a-z]{26}$/);
      assert.match(String(created_at), TIMESTAMP);
      const inOrder = { ...rest, templates: (rest['templates'] as { language: string }[]).sort(byLanguage) };
      assert.deepEqual(inOrder, { ...SMALLEST, provider: 'twilio', ...shown });
      const got = await ours.call('GET', `/v1/chatapp/numbers/${id}`);
      assert.deepEqual(body(got, 200), { id, number, created_at, ...inOrder });
      for (const { text } of [answer, got]) assert.ok(!text.includes(TOKEN), text);
      assert.equal(await kept(id), token);
    });
  }

  const byLanguage = (a: { language: string }, b: { language: string }) => (a.language < b.language ? -1 : 1);

  /** The token that is kept of a number; it is sealed where it is kept. */
  async function kept(id: string): Promise<string | null> {
    const { rows } = await service.pool.query<{ credentials: Buffer | null }>(
      'SELECT credentials FROM chat_numbers WHERE id = $1',
      [id],
    );
    const sealed = rows[0]?.credentials;
    if (!sealed) return null;
    assert.ok(!sealed.includes(TOKEN));
    const seal = chatSeal(SECRET_KEY);
    assert.throws(() => seal.open(sealed, ABSENT), 'as another number’s it does not open');
    return seal.open(sealed, id).toString();
  }

  it('takes a number as people write it', async () => {
    assert.equal((await connect({ number: '+1 (202) 555-7777' })).number, '+12025557777');
    assert.equal((await connect({ number: '+80012345678' })).number, '+80012345678');
  });

  it('409 for a number that is connected, by whomever, until it is disconnected', async () => {
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
    [{ number: undefined }, 'number'],
    [{ number: '12025550142' }, 'number'],
    [{ number: '+1' }, 'number'],
    [{ provider: undefined }, 'provider'],
    [{ provider: 'vonage' }, 'provider'],
    [{ provider: 'toString' }, 'provider'],
    [{ provider: 'meta' }, 'phone_number_id'],
    [{ ...meta, phone_number_id: '' }, 'phone_number_id'],
    [{ ...meta, phone_number_id: '1/2' }, 'phone_number_id'],
    [{ ...meta, phone_number_id: 106540352242922 }, 'phone_number_id'],
    [{ ...meta, access_token: '' }, 'access_token'],
    [{ ...meta, access_token: 'a\r\nb' }, 'access_token'],
    [{ ...meta, access_token: 'x'.repeat(2_049) }, 'access_token'],
    [{ ...meta, auth_token: TOKEN }, 'auth_token'],
    [{ ...meta, templates: [] }, 'templates'],
    [{ phone_number_id: '1' }, 'phone_number_id'],
    [{ access_token: TOKEN }, 'access_token'],
    [{ account_sid: ACCOUNT }, 'auth_token'],
    [{ account_sid: 'AC1', auth_token: TOKEN }, 'account_sid'],
    [{ account_sid: `${ACCOUNT}/x`, auth_token: TOKEN }, 'account_sid'],
    [{ templates: [{ ...TEMPLATE, content_sid: 'HX1' }] }, 'templates.0.content_sid'],
    [{ templates: [{ ...TEMPLATE, name: '' }] }, 'templates.0.name'],
    [{ templates: [TEMPLATE, TEMPLATE] }, 'templates.1.name'],
    [{ templates: [{ ...TEMPLATE, variables: [1] }] }, 'templates.0.variables.0'],
    [{ templates: [{ ...TEMPLATE, x: 1 }] }, 'templates.0.x'],
    [{ own_token: true }, 'own_token'],
    [{}, 'auth_token'],
    [{ ...meta, access_token: null }, 'access_token'],
  ] as [Json, string][]) {
    it(`422 at ${param}: ${JSON.stringify(json).slice(0, 80)}`, async () => {
      assertRefused(await post({ number: fresh(), provider: 'twilio', ...json }), 422, 'validation_error', param);
    });
  }
});

describe('GET /v1/chatapp/numbers', () => {
  it('lists newest first, in pages, without tokens and templates', async () => {
    const theirs = await service.organization();
    const made: unknown[] = [];
    for (let i = 0; i < 5; i++) {
      const { templates, ...number } = await connect({ auth_token: TOKEN, templates: [TEMPLATE] }, theirs);
      assert.deepEqual(templates, [TEMPLATE]);
      made.unshift(number);
    }
    const seen: unknown[] = [];
    for (let query = '?limit=2'; ;) {
      const answer = await theirs.call('GET', `/v1/chatapp/numbers${query}`);
      const page = body<{ numbers: Json[]; has_more: boolean; next_cursor: string | null }>(answer, 200);
      assert.ok(!answer.text.includes(TOKEN));
      seen.push(...page.numbers);
      assert.equal(page.has_more, page.next_cursor !== null);
      if (page.next_cursor === null) break;
      query = `?limit=2&cursor=${page.next_cursor}`;
      assertRefused(await ours.call('GET', `/v1/chatapp/numbers${query}`), 422, 'validation_error', 'cursor');
    }
    assert.deepEqual(seen, made);
  });
});

describe('DELETE /v1/chatapp/numbers/:id', () => {
  it('forgets a number, its token and its templates; messages from it stay', async () => {
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
    const { id: message } = body<{ id: string }>(sent, 202);
    assert.equal(body(await org.call('GET', `/v1/chatapp/${message}`), 200)['from'], number);
    const json = { to: '+14165550123', text: 'Hi.' };
    assertRefused(await org.call('POST', '/v1/chatapp', { json }), 422, 'no_chatapp_account');
  });
});

describe('who may', () => {
  it('another organization’s number and one that does not exist look the same', async () => {
    const { id } = await connect();
    const theirs = await service.organization();
    for (const each of [id, ABSENT]) {
      for (const method of ['GET', 'DELETE']) {
        const answer = await theirs.call(method, `/v1/chatapp/numbers/${each}`);
        assertRefused(answer, 404, 'not_found', undefined, 'there is no chat-app number with this id');
      }
    }
    body(await ours.call('GET', `/v1/chatapp/numbers/${id}`), 200);
  });

  it('read_only reads, sending_access does nothing, and only full_access writes', async () => {
    const { id } = await connect();
    const [readOnly, sending] = [await ours.addKey('read_only'), await ours.addKey('sending_access')];
    for (const path of ['', `/${id}`]) {
      body(await service.call('GET', `/v1/chatapp/numbers${path}`, { key: readOnly }), 200);
      const refused = await service.call('GET', `/v1/chatapp/numbers${path}`, { key: sending });
      assertRefused(refused, 403, 'insufficient_scope');
    }
    const json = { number: fresh(), ...OWN };
    for (const key of [readOnly, sending]) {
      assertRefused(await service.call('POST', '/v1/chatapp/numbers', { key, json }), 403, 'insufficient_scope');
      const path = `/v1/chatapp/numbers/${id}`;
      assertRefused(await service.call('DELETE', path, { key }), 403, 'insufficient_scope');
    }
  });
});
