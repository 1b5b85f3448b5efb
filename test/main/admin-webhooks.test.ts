import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { webhookSeal } from '../../src/accounts/webhooks.ts';
import { openEndpoint } from '../../src/store/webhooks/leases.ts';
import { formatSecret } from '../../src/webhooks/signature.ts';
import { organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { command, printed } from './command-line.ts';

const HOOK_URL = 'https://example.com/hook';

const database = await useDatabase();
const orgId = await organization(database.pool);
const env = { DATABASE_URL: database.url, SECRET_KEY };

describe('webhook add, list and remove', () => {
  const add = (settings: Record<string, string>, ...args: string[]) =>
    command(['webhook', 'add', '--organization', orgId, ...args], settings);

  /** Asserts that the printed secret is stored under this key. @returns the stored URL and event types */
  async function stored(out: string, secretKey = SECRET_KEY): Promise<{ url: string | undefined; events: unknown }> {
    const { id, secret, ...more } = JSON.parse(out) as { id: string; secret: string };
    assert.deepEqual(more, {});
    const endpoint = await openEndpoint(database.pool, id);
    assert.equal(formatSecret(webhookSeal(secretKey).open(endpoint?.secret ?? Buffer.alloc(0), id)), secret);
    const { rows } = await database.pool.query<{ events: string[] }>(
      'SELECT events FROM webhook_endpoints WHERE id = $1',
      [id],
    );
    return { url: endpoint?.url, events: rows[0]?.events };
  }

  it('prints the secret, which is shown once, also if the audit entry cannot be recorded', async () => {
    await database.pool.query('ALTER TABLE audit_log RENAME TO hidden_log');
    try {
      const { code, out, err } = await add(env, '--url', HOOK_URL);
      assert.equal(code, 0);
      await stored(out);
      assert.match(err, /^warning: webhooks\.create is missing in the audit log: /);
    } finally {
      await database.pool.query('ALTER TABLE hidden_log RENAME TO audit_log');
    }
  });

  it('adds an endpoint and prints {id, secret}', async () => {
    const { out, err } = await add(env, '--url', HOOK_URL, '--event', 'email.sent', '--event', 'email.failed');
    assert.equal(err, '');
    assert.deepEqual(await stored(out), { url: HOOK_URL, events: ['email.sent', 'email.failed'] });
  });

  it('uses the key of npm start, which allows an endpoint on this machine', async (t) => {
    const home = await temporaryFolder(t);
    const running = { SECRET_KEY: 'x'.repeat(40), WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8,::1' };
    await writeFile(join(home, 'dev.json'), JSON.stringify({ database_url: database.url }));
    await writeFile(join(home, 'settings.json'), JSON.stringify(running));
    const url = 'http://localhost:4000/hook';
    for (const settings of [{ SENDWRIGHT_HOME: home }, { SENDWRIGHT_HOME: home, DATABASE_URL: database.url }]) {
      const { out, err } = await add(settings, '--url', url);
      assert.equal(err, '');
      assert.deepEqual(await stored(out, 'x'.repeat(40)), { url, events: [] });
    }
  });

  for (const [mistake, args, sentence, exitCode = 1, settings = env] of [
    ['a private URL', ['--url', 'https://10.0.0.1/'], /^url: must be an https URL on the public internet/],
    [
      'an unknown event',
      ['--url', HOOK_URL, '--event', 'email.exploded'],
      /^option '--event <type>' argument 'email\.exploded' is invalid\. Allowed: email\.queued,/,
      2,
    ],
    [
      'an unknown organization',
      ['--url', HOOK_URL, '--organization', `org_${'0'.repeat(26)}`],
      /^organization: there is no organization org_0+\n$/,
    ],
    ['no SECRET_KEY', ['--url', HOOK_URL], /^SECRET_KEY is missing/, 1, { DATABASE_URL: database.url }],
  ] as const) {
    it(`refuses ${mistake}`, async () => {
      const { code, out, err } = await add(settings, ...args);
      assert.deepEqual([code, out], [exitCode, '']);
      assert.match(err, sentence);
    });
  }

  it('webhook list prints endpoints without secrets, and webhook remove deletes one and records it', async () => {
    const own = await organization(database.pool, 'own.example');
    const run = <T>(...args: string[]) => printed<T>(['webhook', ...args, '--organization', own], env);
    const { id } = await run<{ id: string }>('add', '--url', HOOK_URL);
    const other = await run<{ id: string }>('add', '--url', `${HOOK_URL}/2`, '--event', 'email.bounced');
    const listed = await run<Record<string, unknown>[]>('list');
    assert.deepEqual(
      listed.map((endpoint) => [endpoint['id'], endpoint['url'], endpoint['events'], endpoint['secret']]),
      [
        [other.id, `${HOOK_URL}/2`, ['email.bounced'], undefined],
        [id, HOOK_URL, [], undefined],
      ],
    );
    assert.deepEqual(await run('remove', '--webhook', id), { id });
    assert.deepEqual(
      (await run<{ id: string }[]>('list')).map((endpoint) => endpoint.id),
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
});
