import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pino } from 'pino';
import { readConfig } from '../../src/config.ts';
import type { OutgoingChat } from '../../src/domain/chat/chat.ts';
import { chatSeal } from '../../src/accounts/chat-numbers.ts';
import { makeChatProviders, twilioCallbacksUrl } from '../../src/main/wiring/chat-providers.ts';
import { makeContents } from '../../src/main/wiring/twilio-contents.ts';
import { addContents } from '../../src/store/chat/contents.ts';
import type { SendingNumber } from '../../src/store/messages/delivery.ts';
import { chatSimulator } from '../providers/chat.ts';
import { closedPort } from '../providers/servers.ts';
import { connect, TEXT, TO } from '../store/chats.ts';
import { organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { SECRET_KEY } from '../support/secret-key.ts';

const { pool } = await useDatabase();

const SID = `AC${'0'.repeat(32)}`;
const log = pino({ level: 'silent' });
const MESSAGE: OutgoingChat = { id: 'wa_1', type: 'text', from: '+12025550100', to: TO, content: TEXT };

function number(fields: Partial<SendingNumber> = {}): SendingNumber {
  const account = { phone_number_id: null, account_sid: null, credentials: null };
  return { id: 'num_1', channel: 'chatapp', provider: 'twilio', ...account, ...fields };
}

async function outcomeOf(sending: SendingNumber, env: NodeJS.ProcessEnv = {}) {
  const nowhere = `http://127.0.0.1:${await closedPort()}`;
  const urls = { TWILIO_BASE_URL: nowhere, META_BASE_URL: nowhere };
  const config = readConfig({ SECRET_KEY, ...urls, ...env }, 'SECRET_KEY');
  const provider = makeChatProviders(pool, config, log)(sending);
  assert.equal(provider.name, sending.provider);
  assert.equal(provider.refusal(MESSAGE), undefined);
  const outcome = await provider.send(MESSAGE);
  return [outcome.kind, 'detail' in outcome ? outcome.detail : ''];
}

const sealed = (token: string, key = SECRET_KEY) => chatSeal(key).close(Buffer.from(token), 'num_1');

describe('the provider of a number', () => {
  test('uses the credentials of the settings or its own', async () => {
    const settings = { TWILIO_ACCOUNT_SID: SID, TWILIO_AUTH_TOKEN: 'token', META_ACCESS_TOKEN: 'token' };
    const meta = { provider: 'meta', phone_number_id: '1' } as const;
    for (const [sending, env] of [
      [number(), settings],
      [number({ account_sid: SID, credentials: sealed('own') }), {}],
      [number({ credentials: sealed('own') }), { TWILIO_ACCOUNT_SID: SID }],
      [number(meta), settings],
      [number({ ...meta, credentials: sealed('own') }), {}],
    ] as const) {
      const [kind, detail] = await outcomeOf(sending, env);
      assert.equal(kind, 'busy');
      assert.match(detail ?? '', /could not be reached: connection refused/);
    }
  });

  test('returns account while credentials are missing', async () => {
    assert.deepEqual(await outcomeOf(number()), [
      'account',
      'There are no credentials for Twilio: this number has none, nor have the settings.',
    ]);
    assert.equal((await outcomeOf(number(), { TWILIO_AUTH_TOKEN: 'x' }))[0], 'account');
    assert.deepEqual(await outcomeOf(number({ provider: 'meta', phone_number_id: '1' })), [
      'account',
      'There is no access token for Meta: this number has none, nor have the settings.',
    ]);
    assert.deepEqual(await outcomeOf(number({ credentials: sealed('own', 'another key, long enough for that') })), [
      'account',
      'The token of this number cannot be opened: it was sealed with another SECRET_KEY.',
    ]);
  });

  test('is created once per credentials', () => {
    const providerOf = makeChatProviders(pool, readConfig({ SECRET_KEY, META_ACCESS_TOKEN: 't' }, 'SECRET_KEY'), log);
    const meta = number({ provider: 'meta', phone_number_id: '1' });
    assert.equal(providerOf(meta), providerOf({ ...meta }));
    assert.notEqual(providerOf(meta), providerOf({ ...meta, credentials: sealed('own') }));
  });
});

test('Twilio is asked for callbacks only where it can reach PUBLIC_URL; the simulator reaches any address', () => {
  const [twilio, simulator] = ['https://api.twilio.com', 'http://simulator:3025'];
  const [reachable, local] = ['https://mail.example.com', 'http://localhost:3000'];
  for (const [PUBLIC_URL, TWILIO_BASE_URL, url] of [
    [reachable, twilio, reachable],
    [reachable, simulator, reachable],
    [local, twilio, undefined],
    [local, simulator, local],
    ['', twilio, undefined],
  ] as const) {
    const config = readConfig({ PUBLIC_URL, TWILIO_BASE_URL });
    assert.equal(twilioCallbacksUrl(config), url, `${PUBLIC_URL} for ${TWILIO_BASE_URL}`);
  }
});

describe('templates at Twilio', () => {
  const account = { accountSid: SID, authToken: 'token' };
  const content = { contentSid: `HX${'1'.repeat(32)}`, variables: ['1', 'name'] };
  const approved = { ...content, isApproved: true };

  test('are read from the database; missing ones are fetched once and stored', async () => {
    const { id } = await connect(pool, await organization(pool));
    const own = { contentSid: `HX${'2'.repeat(32)}`, variables: [] };
    await addContents(pool, id, [{ name: 'mine', language: 'de', ...own }], 'keep');
    let fetched = 0;
    const contentOf = makeContents(pool, log, async () => {
      fetched++;
      return [
        { name: 'mine', language: 'de', ...approved },
        { name: 'order', language: 'en_US', ...approved },
      ];
    });
    assert.deepEqual(await contentOf(id, account, 'mine', 'de'), own, 'a template added by the operator stays');
    assert.equal(fetched, 0);
    const both = await Promise.all([1, 2].map(() => contentOf(id, account, 'order', 'en_US')));
    assert.deepEqual(both, [content, content]);
    assert.deepEqual(await contentOf(id, account, 'mine', 'de'), own);
    assert.equal(await contentOf(id, account, 'order', 'fr'), undefined);
    assert.equal(fetched, 1, 'not for each template that there is not');
  });

  test('are fetched again after a failure', async () => {
    const { id } = await connect(pool, await organization(pool, 'away.example'));
    let isAway = true;
    const contentOf = makeContents(pool, log, async () => {
      if (isAway) throw new Error('away');
      return [{ name: 'order', language: 'en_US', ...approved }];
    });
    await assert.rejects(contentOf(id, account, 'order', 'en_US'), /away/);
    isAway = false;
    assert.deepEqual(await contentOf(id, account, 'order', 'en_US'), content);
  });

  test('are not stored before they are approved', async () => {
    const { id } = await connect(pool, await organization(pool, 'pending.example'));
    const [first, replacement] = [1, 2].map((n) => `HX${String(n).repeat(32)}`) as [string, string];
    for (const [contentSid, isApproved] of [
      [first, false],
      [replacement, true],
    ] as const) {
      // The first message of a process fetches them.
      const contentOf = makeContents(pool, log, async () => [
        { name: 'order', language: 'en_US', variables: [], contentSid, isApproved },
      ]);
      assert.equal((await contentOf(id, account, 'order', 'en_US'))?.contentSid, contentSid);
    }
  });

  test("are not copied from the operator's account, which other organizations use too", async (t) => {
    const { chatUrl } = await chatSimulator(t, { twilioAccount: null });
    const settings = { SECRET_KEY, TWILIO_BASE_URL: chatUrl, TWILIO_ACCOUNT_SID: SID, TWILIO_AUTH_TOKEN: 'token' };
    const providerOf = makeChatProviders(pool, readConfig(settings, 'SECRET_KEY'), log);
    const template = { name: 'hello_world', language: 'en_US' };
    const message: OutgoingChat = { ...MESSAGE, type: 'template', content: { ...TEXT, text: null, template } };
    const orgId = await organization(pool, 'shared.example');
    const [shared, own] = [await connect(pool, orgId), await connect(pool, orgId)];
    const templates = async (id: string) =>
      (await pool.query('SELECT name FROM chat_templates WHERE number_id = $1', [id])).rows.length;

    const refused = await providerOf(number({ id: shared.id })).send(message);
    assert.equal(refused.kind, 'refused');
    assert.equal(await templates(shared.id), 0);
    await addContents(pool, shared.id, [{ ...template, contentSid: `HX${'0'.repeat(31)}1`, variables: [] }], 'keep');
    assert.equal(
      (await providerOf(number({ id: shared.id })).send(message)).kind,
      'sent',
      'a template added by the operator',
    );
    assert.equal(await templates(shared.id), 1);

    const other = `AC${'1'.repeat(32)}`;
    const credentials = chatSeal(SECRET_KEY).close(Buffer.from('own'), own.id);
    const ofItsOwn = number({ id: own.id, account_sid: other, credentials });
    assert.equal((await providerOf(ofItsOwn).send(message)).kind, 'sent', 'one of the number’s own account');
    assert.ok((await templates(own.id)) > 1);
  });

  test('of a removed number are not stored', async () => {
    await addContents(pool, 'num_gone', [{ name: 'order', language: 'en_US', ...content }], 'keep');
    const { rowCount } = await pool.query(`SELECT FROM chat_templates WHERE number_id = 'num_gone'`);
    assert.equal(rowCount, 0);
  });
});
