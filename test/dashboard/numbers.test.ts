import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chatSeal } from '../../src/accounts/chat-numbers.ts';
import { SECRET_KEY, useService } from '../http/service.ts';
import { type Fields, signedIn, textOf } from './visitor.ts';

const PATH = '/dashboard/numbers';
const ACCOUNT = `AC${'a1'.repeat(16)}`;
const CONTENT = `HX${'b2'.repeat(16)}`;
const TOKEN = 'a-secret-token';

const service = await useService();
const ours = await service.organization('Ours');
const owner = await signedIn(service, ours.id);

let count = 0;
const fresh = () => `+1202555${String(++count).padStart(4, '0')}`;
const readLatest = async (): Promise<Record<string, unknown> & { id: string }> => {
  const { body } = await ours.call('GET', '/v1/chatapp/numbers?limit=1');
  const [{ id } = { id: '' }] = (body as { numbers: { id: string }[] }).numbers;
  return (await ours.call('GET', `/v1/chatapp/numbers/${id}`)).body as Record<string, unknown> & { id: string };
};
const tokenOf = async (id: string): Promise<string> => {
  const { rows } = await service.pool.query<{ credentials: Buffer }>(
    'SELECT credentials FROM chat_numbers WHERE id = $1',
    [id],
  );
  return chatSeal(SECRET_KEY)
    .open(rows[0]?.credentials as Buffer, id)
    .toString();
};

describe('a number', () => {
  it('of Meta is connected; its token is sealed and never shown', async () => {
    const number = fresh();
    const shown = await owner.change(`${PATH}/new`, {
      number,
      provider: 'meta',
      phone_number_id: '106540352242922',
      access_token: TOKEN,
      // Filled in before Meta was selected: ignored.
      account_sid: 'AC1',
      auth_token: 'a b',
      templates: 'nonsense',
    });
    assert.ok(textOf(shown.html).includes(`${number} Meta Own account`), textOf(shown.html));
    const made = await readLatest();
    assert.deepEqual(
      [made['number'], made['provider'], made['phone_number_id'], made['account_sid'], made['own_token']],
      [number, 'meta', '106540352242922', null, true],
    );
    assert.equal(await tokenOf(made.id), TOKEN);
    for (const path of [PATH, `${PATH}/${made.id}`, '/dashboard/audit']) {
      const { status, html } = await owner.get(path);
      assert.equal(status, 200);
      assert.ok(!html.includes(TOKEN), path);
    }
  });

  it('is connected on a form with the URLs to enter at its provider', async () => {
    const text = textOf((await owner.get(`${PATH}/new`)).html);
    for (const path of ['/callbacks/meta', '/callbacks/twilio/inbound#rc=5&rp=all']) {
      assert.ok(text.includes(`: ${service.url}${path}`), `${path} in ${text}`);
    }
  });

  it('of Twilio is connected with its account and templates', async () => {
    await owner.change(`${PATH}/new`, {
      number: fresh(),
      provider: 'twilio',
      account_sid: ACCOUNT,
      auth_token: TOKEN,
      templates: `receipt,en_US,${CONTENT},1,name\n\n"two, words";de;${CONTENT}`,
    });
    const made = await readLatest();
    assert.deepEqual([made['account_sid'], made['own_token']], [ACCOUNT, true]);
    assert.deepEqual(made['templates'], [
      { name: 'receipt', language: 'en_US', content_sid: CONTENT, variables: ['1', 'name'] },
      { name: 'two, words', language: 'de', content_sid: CONTENT, variables: [] },
    ]);
    const viewer = await signedIn(service, ours.id, 'viewer');
    const { html } = await viewer.get(`${PATH}/${made.id}`);
    assert.match(textOf(html), new RegExp(`receipt en_US ${CONTENT} 1, name`));
    assert.ok(!html.includes('/remove'), 'a viewer cannot disconnect it');
  });

  for (const [field, fields, problem] of [
    ['phone_number_id', { provider: 'meta' }, 'is required when provider is meta'],
    ['auth_token', { account_sid: ACCOUNT }, 'is required with account_sid'],
    ['account_sid', { account_sid: 'AC1', auth_token: TOKEN }, 'must be AC and 32 letters or digits'],
    ['auth_token', { auth_token: 'a b' }, 'must be 1 to 2048 printable'],
    ['access_token', { provider: 'meta', phone_number_id: '1', access_token: 'a b' }, 'must be 1 to 2048 printable'],
    ['phone_number_id', { provider: 'meta', phone_number_id: '1/2' }, 'must be 1 to 64 letters, digits'],
    ['auth_token', {}, 'is missing; only the operator can connect'],
    ['provider', { provider: 'pigeon' }, 'is not one of the choices'],
    ['templates', { templates: `a,en,${CONTENT}\n,en,${CONTENT}` }, 'line 2: its name must be 1 to 512 characters'],
    ['templates', { templates: `a,en,${CONTENT}\n\na,en,${CONTENT}` }, 'line 3: the template appears twice'],
  ] as const) {
    it(`is refused at ${field}: ${problem}`, async () => {
      const given: Fields = { number: fresh(), provider: 'twilio', ...(fields as Fields) };
      const { status, html } = await owner.post(`${PATH}/new`, given);
      assert.equal(status, 422, textOf(html));
      assert.match(html, new RegExp(`id="field-${field}-problem"[^>]*>${problem}`));
      assert.ok(!html.includes(TOKEN), 'a token does not stay');
    });
  }

  it('is not connected while its provider cannot be asked, and the form keeps its input', async () => {
    const away = await useService({ verifyNumber: async () => ({ kind: 'unavailable', provider: 'Twilio' }) });
    const browser = await signedIn(away, (await away.organization()).id);
    const fields = { number: fresh(), provider: 'twilio', account_sid: ACCOUNT, auth_token: TOKEN };
    const { status, html } = await browser.post(`${PATH}/new`, fields);
    assert.equal(status, 503);
    assert.ok(textOf(html).includes('Twilio could not confirm the number; try again.'), textOf(html));
    assert.ok(html.includes(`value="${ACCOUNT}"`), textOf(html));
  });

  it('is connected to one organization, and to another after it was disconnected', async () => {
    const number = fresh();
    const own = { number, provider: 'twilio', account_sid: ACCOUNT, auth_token: TOKEN };
    await owner.change(`${PATH}/new`, own);
    const { id } = await readLatest();
    const other = await signedIn(service, (await service.organization()).id);
    const twice = await other.post(`${PATH}/new`, own);
    assert.equal(twice.status, 409);
    assert.match(twice.html, /id="field-number-problem"[^>]*>is connected already/);
    const shown = await owner.change(`${PATH}/${id}/remove`);
    assert.ok(textOf(shown.html).includes(`${number} was disconnected.`), textOf(shown.html));
    assert.equal((await ours.call('GET', `/v1/chatapp/numbers/${id}`)).status, 404);
    await other.change(`${PATH}/new`, own);
  });
});
