import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  findKey,
  insertKey,
  insertOrganization,
  listOrganizations,
  organizationExists,
  PRESETS,
  revokeKey,
} from '../../src/store/accounts.ts';
import { findDomains, insertDomain } from '../../src/store/domains.ts';
import { isDuplicate, type Pool } from '../../src/store/pool.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';

describe('accounts', () => {
  let database: TestDatabase;
  let pool: Pool;
  before(async () => {
    database = await testDatabase();
    pool = database.pool;
    await insertOrganization(pool, 'org_a', 'A');
    await insertOrganization(pool, 'org_b', 'B');
  });
  after(() => database.drop());

  const sha256 = Buffer.alloc(32, 7);

  test('organizations are listed by their ids', async () => {
    const listed = await listOrganizations(pool);
    assert.deepEqual(
      listed.map(({ id, name }) => [id, name]),
      [
        ['org_a', 'A'],
        ['org_b', 'B'],
      ],
    );
    assert.deepEqual([await organizationExists(pool, 'org_a'), await organizationExists(pool, 'org_c')], [true, false]);
    await assert.rejects(insertOrganization(pool, 'org_a', 'again'), isDuplicate);
    await assert.rejects(insertOrganization(pool, 'org_d', ''), { code: '23514' });
  });

  for (const preset of PRESETS)
    test(`a key (${preset}) is found until it is revoked, for good`, async () => {
      const key = {
        id: `key_${preset}`,
        org_id: 'org_a',
        preset,
        domain_ids: preset === 'read_only' ? ['dm_1'] : null,
        sha256,
      };
      await insertKey(pool, key);
      assert.deepEqual(await findKey(pool, key.id), key);
      assert.equal(await revokeKey(pool, key.id), true);
      assert.equal(await findKey(pool, key.id), undefined);
      const revokedAt = async () =>
        (await pool.query<{ at: string }>('SELECT revoked_at AS at FROM api_keys WHERE id = $1', [key.id])).rows[0]?.at;
      const first = await revokedAt();
      assert.equal(await revokeKey(pool, key.id), true);
      assert.equal(await revokedAt(), first);
    });

  test('a key that nobody has is not found and not revoked', async () => {
    assert.equal(await findKey(pool, 'key_none'), undefined);
    assert.equal(await revokeKey(pool, 'key_none'), false);
  });

  test('a key must belong to an organization and have a whole digest', async () => {
    const key = { id: 'key_x', org_id: 'org_none', preset: 'full_access' as const, domain_ids: null, sha256 };
    await assert.rejects(insertKey(pool, key), { code: '23503' });
    await assert.rejects(insertKey(pool, { ...key, org_id: 'org_a', sha256: Buffer.alloc(31) }), { code: '23514' });
  });

  test('a domain that one organization has verified is no other’s to verify, while both may wait for it', async () => {
    const pending = await insertDomain(pool, 'dm_1', 'org_a', 'x.example', false);
    assert.deepEqual([pending?.status, pending?.verified_at], ['pending', null]);
    await insertDomain(pool, 'dm_2', 'org_b', 'x.example', false);
    const verified = await insertDomain(pool, 'dm_3', 'org_a', 'y.example', true);
    assert.deepEqual([verified?.status, verified?.verified_at], ['verified', verified?.created_at]);
    assert.equal(await insertDomain(pool, 'dm_4', 'org_b', 'y.example', true), undefined);
    assert.equal(await insertDomain(pool, 'dm_4', 'org_b', 'y.example', false), undefined);
    await assert.rejects(insertDomain(pool, 'dm_5', 'org_a', 'x.example', false), isDuplicate);
    await assert.rejects(insertDomain(pool, 'dm_6', 'org_a', 'X.example', false), { code: '23514' });
    const found = await findDomains(pool, 'org_a', ['x.example', 'y.example', 'z.example']);
    assert.deepEqual(found.map(({ id }) => id).sort(), ['dm_1', 'dm_3']);
    assert.deepEqual(await findDomains(pool, 'org_b', ['y.example']), []);
  });
});
