import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { request } from 'undici';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { addDomain } from '../../src/accounts/domains.ts';
import { createKey, endKey } from '../../src/accounts/keys.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { post, startApi } from './api-process.ts';

const database = await useDatabase();
const { id: orgId, api_key: owner } = await createOrganization(database.pool, 'revocation');
await addDomain(database.pool, orgId, 'a.example', true);
const env = { DATABASE_URL: database.url, RATE_LIMIT_RPS: '5000', RATE_LIMIT_MAILS_PER_SECOND: '1' };
const processes = await Promise.all([startApi(env), startApi(env)]);
after(async () => {
  for (const api of processes) assert.deepEqual(await api.end(), [0, null]);
});

const at = (index: number): string => processes[index]?.url ?? '';

async function ask(url: string, key: string, method: 'GET' | 'DELETE' = 'GET', path = '/v1/emails'): Promise<number> {
  const { statusCode, body } = await request(url + path, { method, headers: { authorization: `Bearer ${key}` } });
  await body.dump();
  return statusCode;
}

describe('two processes', () => {
  const ways: Readonly<Record<string, (id: string, key: string) => Promise<unknown>>> = {
    'by one of them': async (id) => assert.equal(await ask(at(0), owner, 'DELETE', `/v1/keys/${id}`), 204),
    'by the admin command’s function': (_id, key) => endKey(database.pool, key),
    'by itself': async (id, key) => assert.equal(await ask(at(0), key, 'DELETE', `/v1/keys/${id}`), 204),
  };
  for (const [way, revoke] of Object.entries(ways)) {
    it(`a key that is revoked ${way} is refused by both within 1 s`, async () => {
      const { id, api_key: key } = await createKey(database.pool, orgId, 'full_access', []);
      for (const url of [at(0), at(1)]) for (let i = 0; i < 5; i++) assert.equal(await ask(url, key), 200);
      await revoke(id, key);
      const refused = (url: string) => eventually('refused', async () => (await ask(url, key)) === 401, 1_000);
      await Promise.all([refused(at(0)), refused(at(1))]);
      for (const url of [at(0), at(1)]) assert.equal(await ask(url, key), 401, 'and stays so');
      assert.equal(await ask(at(1), owner), 200);
    });
  }

  it('share the limits of an organization', async () => {
    // While a machine stalls for a second, the tokens of a burst are added: then another organization is tried.
    let last = 0;
    for (let i = 0; i < 5 && last !== 429; i++) last = await sendAfterBothRefused(`limits-${i}`);
    assert.equal(last, 429);
  });

  /** Sends until each process has refused. @returns the next status of the first one */
  async function sendAfterBothRefused(name: string): Promise<number> {
    const { api_key: key, id } = await createOrganization(database.pool, name);
    await addDomain(database.pool, id, `${name}.example`, true);
    const mail = { from: `a@${name}.example`, to: 'b@example.net', subject: 'Hello', text: 'Hi' };
    const send = (url: string) => post(`${url}/v1/emails`, mail, { authorization: `Bearer ${key}` });
    let accepted = 0;
    while ((await send(at(0))) === 202) accepted++;
    assert.ok(accepted >= 20, `${accepted} at one process`);
    await eventually('refused by the other', async () => (await send(at(1))) === 429);
    return send(at(0));
  }
});
