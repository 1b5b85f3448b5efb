import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { makePool } from '../../src/store/postgres/pool.ts';
import { acceptOne, organization } from '../store/mail.ts';
import { ROOT } from '../support/compose-file.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';

const run = promisify(execFile);

describe('admin after-restore', () => {
  let database: TestDatabase;
  before(async () => {
    database = await testDatabase();
  });
  after(() => database.drop());

  async function afterRestore(env: Record<string, string> = {}): Promise<unknown> {
    const { stdout } = await run(process.execPath, ['--import', 'tsx', 'src/main/admin.ts', 'after-restore'], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], DATABASE_URL: database.url, ...env },
    });
    return JSON.parse(stdout);
  }

  test('tells how much is asked about, and whom: Postmark where it is set up, whatever comes first', async () => {
    const orgId = await organization(database.pool);
    const id = await acceptOne(database.pool, orgId);
    assert.deepEqual(await afterRestore(), { emails: 1, messages: 0, asked: 'postmark' });
    const smtp = { SMTP_URL: 'smtp://127.0.0.1:1' };
    assert.deepEqual(await afterRestore(smtp), { emails: 1, messages: 0, asked: 'smtp' });
    const both = { ...smtp, EMAIL_PROVIDERS: 'smtp,postmark' };
    assert.deepEqual(await afterRestore(both), { emails: 1, messages: 0, asked: 'postmark' });
    const { rows } = await database.pool.query(
      'SELECT n, provider, call, outcome FROM attempts WHERE message_id = $1 ORDER BY n',
      [id],
    );
    const doubt = { call: id, outcome: 'unknown' };
    assert.deepEqual(rows, [
      { n: 1, provider: 'postmark', ...doubt },
      { n: 2, provider: 'smtp', ...doubt },
      { n: 3, provider: 'postmark', ...doubt },
    ]);
    const { rows: outbox } = await database.pool.query('SELECT action FROM outbox WHERE message_id = $1', [id]);
    assert.deepEqual(outbox, [{ action: 'leave' }], 'it is carried once');
  });

  for (const name of ['api', 'worker']) {
    test(`refuses while the ${name} is connected, which may send meanwhile`, async () => {
      const pool = makePool(database.url, name, 1, () => undefined);
      // Held, since the pool closes an idle connection before a busy machine has started the command.
      const connection = await pool.connect();
      await assert.rejects(afterRestore(), (error) => {
        const { stderr, code } = error as { stderr: string; code: number };
        assert.deepEqual(
          [code, stderr],
          [1, `stop the API and the workers first, they may send again what was sent before: sendwright ${name}\n`],
        );
        return true;
      });
      connection.release();
      await pool.end();
    });
  }
});
