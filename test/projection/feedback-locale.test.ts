import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { projectFeedback } from '../../src/projection/feedback.ts';
import { migrate } from '../../src/store/postgres/migrate.ts';
import { makePool } from '../../src/store/postgres/pool.ts';
import { acceptOne, emailRow, organization } from '../store/mail.ts';
import { testDatabase } from '../support/database.ts';

const database = await testDatabase(1);

/** A database with the locale in which the fewest characters are white space. Other locales of the C library differ from it little. */
async function databaseWithLocaleC() {
  const url = new URL(database.url);
  const name = `${url.pathname.slice(1)}_c`;
  await database.pool.query(
    `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER libc LOCALE 'C'`,
  );
  url.pathname = name;
  await migrate(url.href);
  const pool = makePool(url.href, 'test', 2, () => undefined);
  after(async () => {
    await pool.end();
    await database.pool.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await database.drop();
  });
  return pool;
}

const pool = await databaseWithLocaleC();
const orgId = await organization(pool);

for (const [i, to] of [
  'Ada <ADDRESS>\u00A0',
  'Ada <ADDRESS>\u3000 ',
  'Ada <\u202FADDRESS>',
  'Ada <ADDRESS\u2007>',
  '\u00A0ADDRESS',
  'ADDRESS\u00A0',
  ' ADDRESS ',
  '"Ada <a@example.net>" <ADDRESS> ',
].entries()) {
  test(`a complaint matches the recipient ${JSON.stringify(to)} in every locale`, async () => {
    const recipient = `ada${i}@example.net`;
    const emailId = await acceptOne(pool, orgId, { to: [to.replace('ADDRESS', recipient)] });
    const evidence = { messageId: '', isSigned: true };
    await projectFeedback(pool, [{ emailId, change: 'complained', recipient, dedupeKey: 'c', evidence }]);
    assert.equal((await emailRow(pool, emailId)).status, 'complained');
    const { rows } = await pool.query('SELECT origin FROM suppressions WHERE email = $1', [recipient]);
    assert.deepEqual(rows, [{ origin: 'complaint' }]);
  });
}

test('a complaint about another address matches no recipient', async () => {
  const emailId = await acceptOne(pool, orgId, { to: ['Ada <ada@example.net>\u00A0'] });
  for (const recipient of ['a@example.net', 'ada@example.com', 'ada']) {
    const evidence = { messageId: '', isSigned: true };
    await projectFeedback(pool, [{ emailId, change: 'complained', recipient, dedupeKey: recipient, evidence }]);
  }
  assert.equal((await emailRow(pool, emailId)).status, 'queued');
});
