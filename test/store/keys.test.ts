import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { insertOrganization } from '../../src/store/accounts/organizations.ts';
import { insertDomain } from '../../src/store/domains/domains.ts';
import {
  findKey,
  insertKey,
  listKeys,
  missingDomains,
  type NewKey,
  recordUses,
  revokeKey,
  revokeKeyOf,
  showKey,
} from '../../src/store/accounts/keys.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase();
await insertOrganization(pool, 'org_a', 'A');
await insertOrganization(pool, 'org_b', 'B');

describe('keys', () => {
  let count = 0;
  const newKey = (fields: Partial<NewKey> = {}): NewKey => ({
    id: `key_${String(++count).padStart(3, '0')}`,
    org_id: 'org_a',
    name: null,
    preset: 'full_access',
    domain_ids: null,
    expires_at: null,
    allowed_ips: null,
    sha256: Buffer.alloc(32, 7),
    ...fields,
  });
  const lastUsed = async (id: string) => (await showKey(pool, 'org_a', id))?.last_used_at;

  test('finds a key with its limits until it is revoked; the first revocation stays', async () => {
    const key = newKey({ preset: 'read_only', domain_ids: ['dm_1'], allowed_ips: ['::/0'] });
    await insertKey(pool, key);
    const { id, org_id, preset, sha256, domain_ids, allowed_ips, expires_at } = key;
    const found = { id, org_id, preset, sha256, domain_ids, allowed_ips, expires_at, expires_in: null };
    assert.deepEqual(await findKey(pool, key.id), found);
    const revokedAt = async () =>
      (await pool.query<{ at: string }>('SELECT revoked_at AS at FROM api_keys WHERE id = $1', [key.id])).rows[0]?.at;
    assert.equal(await revokeKey(pool, key.id), true);
    assert.equal(await findKey(pool, key.id), undefined);
    const first = await revokedAt();
    assert.equal(await revokeKey(pool, key.id), true);
    assert.equal(await revokedAt(), first);
    assert.equal(await findKey(pool, 'key_none'), undefined);
    assert.equal(await revokeKey(pool, 'key_none'), false);
  });

  test('a key expires by the database’s clock, and cannot be created expired', async () => {
    const at = (ms: number) => new Date(Date.now() + ms).toISOString();
    assert.equal(await insertKey(pool, newKey({ expires_at: at(-1) })), undefined);
    const key = newKey({ expires_at: at(3_600_000) });
    assert.equal((await insertKey(pool, key))?.expires_at, key.expires_at);
    const left = (await findKey(pool, key.id))?.expires_in ?? 0;
    assert.ok(left > 3_500_000 && left <= 3_600_000, `${left} ms`);
    await pool.query(`UPDATE api_keys SET expires_at = now() WHERE id = $1`, [key.id]);
    assert.equal(await findKey(pool, key.id), undefined);
    assert.equal((await showKey(pool, 'org_a', key.id))?.id, key.id, 'its owner still sees it');
  });

  test('an organization sees, lists and revokes its own keys only, and no revoked ones', async () => {
    const ids = [];
    for (let i = 0; i < 3; i++) {
      const key = newKey({ org_id: 'org_b' });
      await insertKey(pool, key);
      ids.unshift(key.id);
    }
    const [newest = '', middle = '', oldest = ''] = ids;
    const listed = (await listKeys(pool, 'org_b', null, 2)).map(({ id, created_at }) => ({ id, created_at }));
    assert.deepEqual(
      listed.map(({ id }) => id),
      [newest, middle],
    );
    assert.deepEqual(
      (await listKeys(pool, 'org_b', listed[1] ?? null, 2)).map(({ id }) => id),
      [oldest],
    );
    assert.equal(await showKey(pool, 'org_a', newest), undefined);
    assert.equal(await revokeKeyOf(pool, 'org_a', newest), false);
    assert.equal((await showKey(pool, 'org_b', newest))?.id, newest);
    assert.equal(await revokeKeyOf(pool, 'org_b', newest), true);
    assert.equal(await revokeKeyOf(pool, 'org_b', newest), false);
    assert.equal(await showKey(pool, 'org_b', newest), undefined);
    assert.deepEqual(
      (await listKeys(pool, 'org_b', null, 3)).map(({ id }) => id),
      [middle, oldest],
    );
  });

  test('missingDomains returns domains of another organization', async () => {
    await insertDomain(pool, 'dm_a', 'org_a', 'a.example', false);
    await insertDomain(pool, 'dm_b', 'org_b', 'b.example', false);
    assert.deepEqual(await missingDomains(pool, 'org_a', ['dm_a']), []);
    assert.deepEqual((await missingDomains(pool, 'org_a', ['dm_a', 'dm_b', 'dm_c'])).sort(), ['dm_b', 'dm_c']);
  });

  test('two processes that record uses of the same keys do not wait for each other', async () => {
    const keys = [newKey(), newKey()];
    for (const key of keys) await insertKey(pool, key);
    const ids = keys.map(({ id }) => id);
    const client = await pool.connect();
    await client.query('BEGIN');
    await recordUses(client, ids.slice(0, 1));
    await recordUses(pool, [...ids].reverse());
    assert.equal(await lastUsed(ids[0] ?? ''), null);
    assert.match(String(await lastUsed(ids[1] ?? '')), /Z$/);
    await client.query('COMMIT');
    client.release();
    assert.match(String(await lastUsed(ids[0] ?? '')), /Z$/);
  });
});
