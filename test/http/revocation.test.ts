import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { request } from 'undici';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { issueKeyForOperator, revokeKeyForOperator } from '../../src/accounts/keys.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { startApi } from './api-process.ts';

const database = await useDatabase();
const { id: orgId, api_key: owner } = await createOrganization(database.pool, 'revocation');
const env = { DATABASE_URL: database.url, RATE_LIMIT_RPS: '5000' };
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
    'by the admin command’s function': (_id, key) => revokeKeyForOperator(database.pool, key),
    'by itself': async (id, key) => assert.equal(await ask(at(0), key, 'DELETE', `/v1/keys/${id}`), 204),
  };
  for (const [way, revoke] of Object.entries(ways)) {
    it(`a key that is revoked ${way} is refused by both within 1 s`, async () => {
      const { id, api_key: key } = await issueKeyForOperator(database.pool, orgId, 'full_access', []);
      for (const url of [at(0), at(1)]) for (let i = 0; i < 5; i++) assert.equal(await ask(url, key), 200);
      await revoke(id, key);
      const refused = (url: string) => eventually('refused', async () => (await ask(url, key)) === 401, 1_000);
      await Promise.all([refused(at(0)), refused(at(1))]);
      for (const url of [at(0), at(1)]) assert.equal(await ask(url, key), 401, 'and stays so');
      assert.equal(await ask(at(1), owner), 200);
    });
  }
});
