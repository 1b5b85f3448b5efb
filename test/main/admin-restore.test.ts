import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makePool } from '../../src/store/postgres/pool.ts';
import { acceptOne, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { lockTable } from '../support/locks.ts';
import { assertFailed, command } from './command-line.ts';

const database = await useDatabase();

describe('admin after-restore', () => {
  const afterRestore = (env: Record<string, string> = {}) =>
    command(['after-restore'], { DATABASE_URL: database.url, ...env });

  test('reports how many emails are ambiguous, and asks Postmark if it is configured', async () => {
    const orgId = await organization(database.pool);
    const id = await acceptOne(database.pool, orgId);
    const assertPrints = async (env: Record<string, string>, asked: string) =>
      assert.deepEqual(JSON.parse((await afterRestore(env)).out), { emails: 1, messages: 0, asked, erasures: 0 });
    await assertPrints({}, 'postmark');
    const smtp = { SMTP_URL: 'smtp://127.0.0.1:1' };
    await assertPrints(smtp, 'smtp');
    const both = { ...smtp, EMAIL_PROVIDERS: 'smtp,postmark' };
    await assertPrints(both, 'postmark');
    const { rows } = await database.pool.query(
      'SELECT n, provider, call, outcome FROM attempts WHERE message_id = $1 ORDER BY n',
      [id],
    );
    const ambiguous = { call: id, outcome: 'unknown' };
    assert.deepEqual(rows, [
      { n: 1, provider: 'postmark', ...ambiguous },
      { n: 2, provider: 'smtp', ...ambiguous },
      { n: 3, provider: 'postmark', ...ambiguous },
    ]);
    const { rows: outbox } = await database.pool.query('SELECT action FROM outbox WHERE message_id = $1', [id]);
    assert.deepEqual(outbox, [{ action: 'leave' }], 'it is dispatched once');
  });

  test('lets the statement that marks all open emails take hours', async () => {
    await database.pool.query(`
      CREATE TABLE limits (statement_timeout interval);
      CREATE FUNCTION note_limit() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO limits VALUES (current_setting('statement_timeout')::interval); RETURN NULL; END $$;
      CREATE TRIGGER note_limit AFTER INSERT ON attempts FOR EACH STATEMENT EXECUTE FUNCTION note_limit()`);
    assert.equal((await afterRestore()).code, 0);
    await database.pool.query('DROP TRIGGER note_limit ON attempts');
    const { rows } = await database.pool.query(`SELECT FROM limits WHERE statement_timeout >= '1 hour'`);
    assert.ok(rows.length > 0);
  });

  test('states that a statement took longer than a limit in DATABASE_URL', async (t) => {
    await lockTable(t, database.pool, 'emails', 'ACCESS EXCLUSIVE');
    const url = `${database.url}?statement_timeout=300`;
    const line =
      'the database canceled a statement: it took longer than statement_timeout, or an administrator canceled it';
    assertFailed(await afterRestore({ DATABASE_URL: url }), line);
  });

  for (const name of ['api', 'worker']) {
    test(`refuses while the ${name} is connected, which may send meanwhile`, async () => {
      const pool = makePool(database.url, name, 1, () => undefined);
      // Held, since the pool closes an idle connection.
      const connection = await pool.connect();
      const line = `stop the API and the workers first, they may send again what was sent before: sendwright ${name}`;
      assertFailed(await afterRestore(), line);
      connection.release();
      await pool.end();
      await eventually('the connection has ended', async () => {
        const { rowCount } = await database.pool.query('SELECT FROM pg_stat_activity WHERE application_name = $1', [
          `sendwright ${name}`,
        ]);
        return rowCount === 0;
      });
    });
  }
});
