import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { pino } from 'pino';
import { readConfig } from '../../src/config.ts';
import { connectNumberForOperator, chatSeal } from '../../src/accounts/chat-numbers.ts';
import { makeVerifyNumber } from '../../src/main/wiring/verify-number.ts';
import { startSimulator } from '../../dev/simulator/simulator.ts';
import { assertRefused, SECRET_KEY, startService, useService } from './service.ts';

/** Numbers are connected against a Twilio and a Meta that have the numbers +12025550100 to +12025550199. */
const SID = `AC${'a1'.repeat(16)}`;
const TWILIO_TOKEN = 'the-token-of-the-account';
const META_TOKEN = 'the-token-of-the-number';
const PATH = '/v1/chatapp/numbers';

const simulator = await startSimulator({
  ...{ host: '127.0.0.1', port: 0, smtpPort: 0, folder: null, serverToken: null, deliveryCallback: null },
  twilioAccount: { sid: SID, token: TWILIO_TOKEN },
  metaToken: META_TOKEN,
  log: pino({ level: 'silent' }),
});
after(() => simulator.close());
const urls = { TWILIO_BASE_URL: simulator.chatUrl, META_BASE_URL: simulator.chatUrl };
const service = await useService({ verifyNumber: makeVerifyNumber(readConfig(urls)) });
const [a, b] = [await service.organization(), await service.organization()];

let count = 9;
const fresh = () => `+120255501${++count}`;
const meta = (number: string, more: object = {}) => ({
  ...{ number, provider: 'meta', phone_number_id: number.slice(1), access_token: META_TOKEN },
  ...more,
});
const twilio = (number: string, more: object = {}) => ({
  ...{ number, provider: 'twilio', account_sid: SID, auth_token: TWILIO_TOKEN },
  ...more,
});
const operator = (orgId: string, number: string, phoneNumberId: string) =>
  connectNumberForOperator(service.pool, chatSeal(SECRET_KEY), orgId, {
    ...{ number, provider: 'meta', phone_number_id: phoneNumberId, account_sid: null, token: null, templates: [] },
  });
/** A number that an earlier version connected without confirmation. */
async function unconfirmed(orgId: string, number: string, phoneNumberId: string, id?: string): Promise<string> {
  const made = await operator(orgId, number, phoneNumberId);
  await service.pool.query('UPDATE chat_numbers SET verified_by = NULL, id = coalesce($2, id) WHERE id = $1', [
    made.id,
    id ?? null,
  ]);
  return id ?? made.id;
}
const holders = async (phoneNumberId: string): Promise<unknown[]> => {
  const { rows } = await service.pool.query<object>(
    'SELECT org_id, number, verified_by FROM chat_numbers WHERE phone_number_id = $1',
    [phoneNumberId],
  );
  return rows;
};

describe("a number on the operator's account", () => {
  it('cannot be connected by an organization', async () => {
    const number = fresh();
    await operator(a.id, number, number.slice(1));
    const json = { number: '+12025559999', provider: 'meta', phone_number_id: number.slice(1) };
    const answer = await b.call('POST', PATH, { json });
    assertRefused(answer, 422, 'validation_error', 'access_token', 'is missing; only the operator can connect');
    assert.deepEqual(await holders(number.slice(1)), [{ org_id: a.id, number, verified_by: 'operator' }]);
  });

  it('is connected by the operator once for each phone_number_id', async () => {
    const number = fresh();
    await operator(a.id, number, number.slice(1));
    await assert.rejects(
      operator(b.id, '+12025559998', number.slice(1)),
      /^ServiceError: phone_number_id: is connected/,
    );
    await assert.rejects(operator(b.id, number, '4711'), /^ServiceError: number: is connected already/);
  });

  it('has one holder if several organizations are connected concurrently', async () => {
    const id = '123456789012345';
    const made = await Promise.allSettled(
      Array.from({ length: 8 }, (_, i) => operator(i % 2 ? a.id : b.id, `+1202555800${i}`, id)),
    );
    assert.equal(made.filter(({ status }) => status === 'fulfilled').length, 1);
    assert.equal((await holders(id)).length, 1);
  });
});

describe('a number with its own token', () => {
  for (const [provider, claim] of Object.entries({ meta, twilio })) {
    it(`is connected after ${provider} has confirmed it`, async () => {
      const answer = await b.call('POST', PATH, { json: claim(fresh()) });
      assert.equal(answer.status, 201, answer.text);
      const { rows } = await service.pool.query('SELECT verified_by FROM chat_numbers WHERE id = $1', [
        (answer.body as { id: string }).id,
      ]);
      assert.deepEqual(rows, [{ verified_by: 'provider' }]);
    });
  }

  for (const [name, json, param] of [
    ['an unknown Meta token', () => meta(fresh(), { access_token: 'wrong' }), 'access_token'],
    ['an unknown Meta id', () => meta(fresh(), { phone_number_id: '4711' }), 'access_token'],
    ['the id of another number', () => meta('+12025559997', { phone_number_id: '12025550100' }), 'number'],
    ['an unknown Twilio token', () => twilio(fresh(), { auth_token: 'wrong' }), 'auth_token'],
    ['an unknown Twilio account', () => twilio(fresh(), { account_sid: `AC${'0'.repeat(32)}` }), 'auth_token'],
    ['a number that the Twilio account does not have', () => twilio('+12025559996'), 'number'],
    ['a Twilio token without an account', () => twilio(fresh(), { account_sid: null }), 'account_sid'],
  ] as const) {
    it(`is refused with ${name}`, async () => {
      assertRefused(await b.call('POST', PATH, { json: json() }), 422, 'validation_error', param);
    });
  }

  it('is refused with 503 while the provider does not answer, and connected afterwards', async (t) => {
    const json = meta(fresh());
    const { pool } = service;
    const none = { META_BASE_URL: 'http://127.0.0.1:1', TWILIO_BASE_URL: 'http://127.0.0.1:1' };
    const cutOff = await startService({ pool, verifyNumber: makeVerifyNumber(readConfig(none)) });
    t.after(() => cutOff.close());
    for (const each of [json, twilio(json.number)]) {
      const answer = await cutOff.call('POST', PATH, { key: b.key, json: each });
      assertRefused(answer, 503, 'unavailable');
      assert.equal(answer.headers['retry-after'], '1');
    }
    assert.equal((await b.call('POST', PATH, { json })).status, 201);
  });

  it('replaces an unconfirmed connection, and no confirmed one', async () => {
    const number = fresh();
    await unconfirmed(a.id, number, 'made-up');
    await unconfirmed(a.id, '+12025559990', number.slice(1), 'num_unconfirmed');
    const answer = await b.call('POST', PATH, { json: meta(number) });
    assert.equal(answer.status, 201, answer.text);
    assert.deepEqual(await holders(number.slice(1)), [{ org_id: b.id, number, verified_by: 'provider' }]);
    assert.deepEqual(await holders('made-up'), []);
    const late = await a.call('POST', PATH, { json: meta(number) });
    assertRefused(late, 409, 'conflict', 'number', 'is connected already');
  });

  it('keeps its id and so its pending messages when its own organization confirms it', async () => {
    const number = fresh();
    const id = await unconfirmed(a.id, number, number.slice(1));
    const answer = await a.call('POST', PATH, { json: meta(number) });
    assert.equal(answer.status, 201, answer.text);
    assert.equal((answer.body as { id: string }).id, id);
    assert.deepEqual(await holders(number.slice(1)), [{ org_id: a.id, number, verified_by: 'provider' }]);
  });
});
