import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeKeyRing } from '../../src/store/sealing/key-ring.ts';
import { makeEmailContents } from '../../src/store/emails/contents.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { organization } from './mail.ts';

const { pool } = await useDatabase();

async function versions(orgId: string): Promise<number[]> {
  const { rows } = await pool.query<{ version: number }>(
    'SELECT version FROM data_keys WHERE org_id = $1 ORDER BY version',
    [orgId],
  );
  return rows.map(({ version }) => version);
}

/** Seals a text as a new process would. @returns the stored form, and the version of its key */
async function seal(orgId: string, id: string, text: string) {
  const contents = makeEmailContents(SECRET_KEY);
  const sealed = await contents.sealMessage(pool, orgId, id, { text });
  return { contents, sealed };
}

async function assertOpens(orgId: string, id: string, sealed: Buffer, text: string): Promise<void> {
  const stored = { id, org_id: orgId, content: null, sealed_content: sealed };
  assert.deepEqual(await makeEmailContents(SECRET_KEY).openMessage(pool, stored), { text });
}

for (const [due, change] of [
  ['a year', `created_at = now() - interval '366 days'`],
  ['2^31 values', `seals = 2147483648`],
] as const) {
  test(`a data key is replaced after ${due}, and what it has sealed still opens`, async () => {
    const orgId = await organization(pool);
    const { contents, sealed: first } = await seal(orgId, 'sms_1', 'before');
    const [hash] = (await contents.hashAddresses(pool, orgId, ['a@example.net'])) ?? [];
    await seal(orgId, 'sms_2', 'before too');
    assert.deepEqual(await versions(orgId), [1]);

    await pool.query(`UPDATE data_keys SET ${change} WHERE org_id = $1`, [orgId]);
    const rotated = await Promise.all([1, 2, 3].map((n) => seal(orgId, `sms_3${n}`, 'after')));
    assert.deepEqual(await versions(orgId), [1, 2], 'processes that replace it concurrently agree on a key');
    for (const [index, { sealed }] of rotated.entries()) await assertOpens(orgId, `sms_3${index + 1}`, sealed, 'after');
    await assertOpens(orgId, 'sms_1', first, 'before');

    await pool.query('DELETE FROM data_keys WHERE org_id = $1 AND version = 2', [orgId]);
    const stored = { id: 'sms_31', org_id: orgId, content: null, sealed_content: rotated[0]?.sealed ?? null };
    await assert.rejects(makeEmailContents(SECRET_KEY).openMessage(pool, stored), /no data key 2/);
    const [same] = (await makeEmailContents(SECRET_KEY).hashAddresses(pool, orgId, ['a@example.net'])) ?? [];
    assert.deepEqual(same, hash, 'hashes of erased recipients depend on the first key');
  });
}

test('a running process replaces a key when the values that it has sealed reach 2^31', async () => {
  const orgId = await organization(pool);
  const keys = makeKeyRing(SECRET_KEY);
  assert.equal((await keys.latest(pool, orgId, 1)).version, 1);
  await pool.query('UPDATE data_keys SET seals = 2147483648 - 65536 WHERE org_id = $1', [orgId]);
  assert.equal((await keys.latest(pool, orgId, 65_534)).version, 1);
  assert.equal((await keys.latest(pool, orgId, 1)).version, 1);
  await eventually('the next key is used', async () => (await keys.latest(pool, orgId, 1)).version === 2);
  assert.deepEqual(await versions(orgId), [1, 2]);
});
