import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { webhookSeal } from '../../src/accounts/webhooks.ts';
import { openEndpoint } from '../../src/store/webhooks/idle.ts';
import { showSecret } from '../../src/webhooks/signature.ts';
import { organization } from '../store/mail.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';
import { command } from './command-line.ts';

const SECRET_KEY = 'a secret key for tests, and long enough';
const URL_ = 'https://example.com/hook';

describe('webhook add --organization O --url U [--event T]… → {id, secret}', { concurrency: 2 }, () => {
  let database: TestDatabase;
  let orgId: string;
  before(async () => {
    database = await testDatabase();
    orgId = await organization(database.pool);
  });
  after(() => database.drop());

  function add(env: Record<string, string>, ...args: string[]) {
    return command(['webhook', 'add', ...args], env);
  }

  /** What was made, and the URL and the types that are kept of it; its secret opens with this key. */
  async function made(out: string, secretKey = SECRET_KEY): Promise<{ url: string | undefined; events: unknown }> {
    const { id, secret, ...more } = JSON.parse(out) as { id: string; secret: string };
    assert.deepEqual(more, {});
    const endpoint = await openEndpoint(database.pool, id);
    assert.equal(showSecret(webhookSeal(secretKey).open(endpoint?.secret ?? Buffer.alloc(0), id)), secret);
    const { rows } = await database.pool.query<{ events: string[] }>(
      'SELECT events FROM webhook_endpoints WHERE id = $1',
      [id],
    );
    return { url: endpoint?.url, events: rows[0]?.events };
  }

  it('makes one', async () => {
    const env = { DATABASE_URL: database.url, SECRET_KEY };
    const { out, err } = await add(
      env,
      '--organization',
      orgId,
      '--url',
      URL_,
      '--event',
      'email.sent',
      '--event',
      'email.failed',
    );
    assert.equal(err, '');
    assert.deepEqual(await made(out), { url: URL_, events: ['email.sent', 'email.failed'] });
  });

  it('makes one for an npm start with its key, on this machine too', async (t) => {
    const home = await temporaryFolder(t);
    await writeFile(join(home, 'dev.json'), JSON.stringify({ database_url: database.url }));
    await writeFile(join(home, 'secrets.json'), JSON.stringify({ secret_key: 'x'.repeat(40) }));
    const url = 'http://localhost:4000/hook';
    for (const env of [{ SENDWRIGHT_HOME: home }, { SENDWRIGHT_HOME: home, DATABASE_URL: database.url }]) {
      const { out, err } = await add(env, '--organization', orgId, '--url', url);
      assert.equal(err, '');
      assert.deepEqual(await made(out, 'x'.repeat(40)), { url, events: [] });
    }
  });

  for (const [what, args, sentence, exitCode = 1] of [
    ['a URL that may not be', ['--url', 'https://10.0.0.1/'], /^url: must be an https URL on the public internet/],
    [
      'an event that there is not',
      ['--url', URL_, '--event', 'email.exploded'],
      /^option '--event <type>' argument 'email\.exploded' is invalid\. Allowed: email\.queued,/,
      2,
    ],
    ['no URL', [], /^required option '--url <url>' not specified\n/, 2],
  ] as const) {
    it(`says what is wrong: ${what}`, async () => {
      const { code, out, err } = await add(
        { DATABASE_URL: database.url, SECRET_KEY },
        '--organization',
        orgId,
        ...args,
      );
      assert.deepEqual([code, out], [exitCode, '']);
      assert.match(err, sentence);
    });
  }

  it('webhook list prints endpoints without secrets, and webhook remove deletes one and records it', async () => {
    const own = await organization(database.pool, 'own.example');
    const env = { DATABASE_URL: database.url, SECRET_KEY };
    const run = async (...args: string[]) => {
      const { code, out, err } = await command(['webhook', ...args, '--organization', own], env);
      assert.deepEqual([code, err], [0, '']);
      return JSON.parse(out) as unknown;
    };
    const { id } = (await run('add', '--url', URL_)) as { id: string };
    const other = (await run('add', '--url', `${URL_}/2`, '--event', 'email.bounced')) as { id: string };
    const listed = (await run('list')) as Record<string, unknown>[];
    assert.deepEqual(
      listed.map((endpoint) => [endpoint['id'], endpoint['url'], endpoint['events'], endpoint['secret']]),
      [
        [other.id, `${URL_}/2`, ['email.bounced'], undefined],
        [id, URL_, [], undefined],
      ],
    );
    assert.deepEqual(await run('remove', '--webhook', id), { id });
    assert.deepEqual(
      ((await run('list')) as { id: string }[]).map((endpoint) => endpoint.id),
      [other.id],
    );
    const { rows } = await database.pool.query(
      `SELECT actor_id, target FROM audit_log WHERE org_id = $1 AND action = 'webhooks.delete'`,
      [own],
    );
    assert.deepEqual(rows, [{ actor_id: 'admin', target: id }]);
    // Keeps the endpoint of another organization.
    const foreign = await command(['webhook', 'remove', '--organization', orgId, '--webhook', other.id], env);
    assert.deepEqual([foreign.code, foreign.err], [1, 'there is no webhook endpoint with this id\n']);
  });

  it('says what is wrong: an organization that there is not, no key', async () => {
    const absent = `org_${'0'.repeat(26)}`;
    const unknown = await add({ DATABASE_URL: database.url, SECRET_KEY }, '--organization', absent, '--url', URL_);
    assert.match(unknown.err, /^organization: there is no organization org_0+\n$/);
    const keyless = await add({ DATABASE_URL: database.url }, '--organization', orgId, '--url', URL_);
    assert.match(keyless.err, /^SECRET_KEY is missing/);
  });
});
