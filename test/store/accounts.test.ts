import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { insertOrganization, listOrganizations, organizationExists } from '../../src/store/accounts/organizations.ts';
import { findDomains, insertDomain } from '../../src/store/domains/domains.ts';
import { isDuplicate } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase();
await insertOrganization(pool, 'org_a', 'A');
await insertOrganization(pool, 'org_b', 'B');

describe('accounts', () => {
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

  test('a domain is verified by one organization only, and may be pending at several', async () => {
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
