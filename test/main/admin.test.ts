import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parseApiKey } from '../../src/accounts/keys.ts';
import { migrate as migrateDatabase, migrationNames } from '../../src/store/postgres/migrate.ts';
import { findKey } from '../../src/store/accounts/keys.ts';
import { SECRET_KEY } from '../http/service.ts';
import { startTlsDatabase } from '../store/tls-database.ts';
import { useDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';
import { assertFailed, assertMisused, command, printed as printedWith, runProcess } from './command-line.ts';

const ABSENT = `org_${'0'.repeat(26)}`;

const database = await useDatabase();
const env = { DATABASE_URL: database.url };
const admin = (...args: string[]) => command(args, env);
const printed = <T = Record<string, unknown>>(...args: string[]) => printedWith<T>(args, env);

describe('organization, quota, key and domain', () => {
  it('organization create prints {id, name, api_key}', async () => {
    const made = await printed('organization', 'create', '--name', 'Ada & Söhne');
    assert.deepEqual(Object.keys(made), ['id', 'name', 'api_key']);
    assert.equal(made['name'], 'Ada & Söhne');
    const key = parseApiKey(String(made['api_key']));
    assert.equal((await findKey(database.pool, key?.id ?? ''))?.org_id, made['id']);
    const listed = await printed<Record<string, unknown>[]>('organization', 'list');
    assert.ok(listed.some(({ id, name }) => id === made['id'] && name === 'Ada & Söhne'));
  });

  it('key create, list and revoke work on one organization, also for certain domains', async () => {
    const { id } = await printed<{ id: string }>('organization', 'create', '--name=Keys');
    const add = (...args: string[]) => printed('domain', 'add', '--organization', id, '--name', ...args);
    const [pending, verified] = [await add('Pending.example'), await add('bücher.example', '--verified')];
    assert.deepEqual([pending['status'], verified['status']], ['pending', 'verified']);

    const full = await printed<{ id: string; api_key: string }>('key', 'create', '--organization', id);
    assert.deepEqual(Object.keys(full), ['id', 'api_key']);
    assert.equal((await findKey(database.pool, full.id))?.preset, 'full_access');
    const domains = ['--domain', 'pending.example', '--domain', 'bücher.example'];
    const preset = ['--preset', 'sending_access'];
    const limited = await printed<{ id: string }>('key', 'create', '--organization', id, ...preset, ...domains);
    const stored = await findKey(database.pool, limited.id);
    assert.equal(stored?.preset, 'sending_access');
    assert.deepEqual([...(stored.domain_ids ?? [])].sort(), [pending['id'], verified['id']].sort());

    const list = () => printed<Record<string, unknown>[]>('key', 'list', '--organization', id);
    const [listed, ...others] = await list();
    assert.deepEqual([listed?.['id'], listed?.['preset'], others.length], [limited.id, 'sending_access', 2]);
    assert.ok(!JSON.stringify(await list()).includes(parseApiKey(full.api_key)?.secret ?? '?'), 'without secrets');
    assert.deepEqual(await printed('key', 'revoke', '--key', full.api_key), { id: full.id });
    assert.deepEqual(await printed('key', 'remove', '--key', limited.id), { id: limited.id });
    assert.equal((await list()).length, 1);
    assert.equal(await findKey(database.pool, full.id), undefined);
    assert.equal(await findKey(database.pool, limited.id), undefined);
  });

  it('quota set takes a number or none and prints the quota and its usage', async () => {
    const { id } = await printed<{ id: string }>('organization', 'create', '--name', 'Quota');
    for (const [monthly, value] of [
      ['1000', 1_000],
      ['0', 0],
      ['none', null],
    ] as const) {
      const { resets_at: resetsAt, ...set } = await printed('quota', 'set', '--organization', id, '--monthly', monthly);
      assert.deepEqual(set, { organization: id, monthly: value, used: 0 });
      assert.match(String(resetsAt), /^\d{4}-\d\d-01T00:00:00\.000Z$/);
    }
    const mistake = (monthly: string) =>
      `option '--monthly <emails>' argument '${monthly}' is invalid. Allowed: a number of emails, 0 or more, or "none" for no quota.`;
    const set = ['quota', 'set', '--organization', id, '--monthly'];
    for (const monthly of ['', '-1', '1.5', '1e3', 'x', '1'.repeat(16)]) {
      await assertMisused([...set, monthly], mistake(monthly), 'quota set');
    }
  });

  it('organization suspend and resume are recorded in the audit log', async () => {
    const { id } = await printed<{ id: string }>('organization', 'create', '--name', 'Paused');
    const listed = async () =>
      (await printed<Record<string, unknown>[]>('organization', 'list')).find((each) => each['id'] === id);
    const suspended = await printed('organization', 'suspend', '--organization', id, '--reason', 'Spam');
    assert.deepEqual([suspended['id'], suspended['suspended_reason']], [id, 'Spam']);
    assert.equal((await listed())?.['suspended_at'], suspended['suspended_at']);
    const resumed = await printed('organization', 'resume', '--organization', id);
    assert.deepEqual(resumed, { id, suspended_at: null, suspended_reason: null });
    assert.equal((await listed())?.['suspended_at'], null);
    const { rows } = await database.pool.query<object>(
      `SELECT action, actor_kind, target, detail FROM audit_log WHERE org_id = $1 AND action <> 'organizations.create' ORDER BY at, id`,
      [id],
    );
    const entry = { actor_kind: 'system', target: id };
    assert.deepEqual(rows, [
      { action: 'organizations.suspend', ...entry, detail: { reason: 'Spam' } },
      { action: 'organizations.resume', ...entry, detail: {} },
    ]);
  });

  for (const [args, sentence] of [
    [['organization', 'suspend', '--organization', 'x'], 'organization: there is no organization x'],
    [['organization', 'create', '--name', ' '], 'name: must not be empty'],
    [['quota', 'set', '--organization', 'x', '--monthly', '1'], 'organization: there is no organization x'],
    [['key', 'list', '--organization', ABSENT], `organization: there is no organization ${ABSENT}`],
    [['suppression', 'list', '--organization', 'x'], 'organization: there is no organization x'],
    [
      ['suppression', 'add', '--organization', 'x', '--email', 'a@b.example'],
      'organization: there is no organization x',
    ],
    [['organization', 'create', '--name', 'a\nb'], 'name: must not contain control characters or line breaks'],
    [['key', 'create', '--organization', ABSENT], `organization: there is no organization ${ABSENT}`],
    [['domain', 'add', '--organization', 'x', '--name', 'a.example'], 'organization: there is no organization x'],
    [['key', 'revoke', '--key', 'x'], 'key: there is no such key'],
  ] as const) {
    it(`${args.join(' ').replace('\n', '\\n')} fails with: ${sentence}`, async () => {
      assertFailed(await admin(...args), sentence);
    });
  }

  it('key create fails for an unknown domain', async () => {
    const { id } = await printed<{ id: string }>('organization', 'create', '--name', 'Domains');
    const result = await admin('key', 'create', '--organization', id, '--domain', 'other.example');
    assertFailed(result, 'domain: the organization has no domain other.example');
  });
});

describe('suppression', () => {
  it('adds, lists and removes an address', async () => {
    const { id } = await printed<{ id: string }>('organization', 'create', '--name=Lists');
    const on = (action: string, email: string) => ['suppression', action, '--organization', id, '--email', email];
    const list = () => printed<Record<string, unknown>[]>('suppression', 'list', '--organization', id);
    const added = await printed(...on('add', 'Ada <Ada@Example.net>'));
    assert.match(String(added['id']), /^sup_/);
    assert.deepEqual([added['email'], added['origin']], ['ada@example.net', 'manual']);
    assert.deepEqual(await printed(...on('add', 'ADA@example.net')), added);
    await printed(...on('add', 'grace@example.net'));
    assert.deepEqual(
      (await list()).map(({ email }) => email),
      ['grace@example.net', 'ada@example.net'],
    );
    assert.deepEqual(await printed(...on('remove', 'ADA@example.net')), { email: 'ada@example.net', removed: 1 });
    assert.equal((await list()).length, 1);
    assertFailed(
      await admin(...on('remove', 'ada@example.net')),
      'the suppression list has no entry with this id or address',
    );
    assertFailed(await admin(...on('add', 'nobody')), 'email: must be local@domain or Name <local@domain>');
  });
});

describe('the audit log', () => {
  it('records the actions of the command line', async (t) => {
    const { id } = await printed<{ id: string }>('organization', 'create', '--name=Audited');
    const of = ['--organization', id];
    const key = await printed('key', 'create', ...of, '--preset', 'read_only');
    await printed('key', 'revoke', '--key', String(key['api_key']));
    await printed('domain', 'add', ...of, '--name', 'audited.example', '--verified');
    await printed('domain', 'remove', ...of, '--name', 'audited.example');
    const suppressed = await printed('suppression', 'add', ...of, '--email', 'a@example.net');
    await printed('suppression', 'list', ...of);
    await printed('suppression', 'remove', ...of, '--email', 'a@example.net');
    await printed('quota', 'set', ...of, '--monthly', '5');
    await printed('user', 'create', ...of, '--email', 'audited@example.net');
    const since = '2026-03-01T00:00:00.000Z';
    const stores = { ...env, SECRET_KEY, ATTACHMENT_STORE: `file:${await temporaryFolder(t)}` };
    await printedWith(['emails', 'retry', ...of, '--status', 'failed', '--since', since], stores);
    const list = async () => {
      const { rows } = await database.pool.query<{ action: string; actor: string; target: string; detail: object }>(
        `SELECT action, actor_kind || ' ' || actor_id AS actor, target, detail FROM audit_log WHERE org_id = $1 ORDER BY at, id`,
        [id],
      );
      return rows;
    };
    const rows = await list();
    assert.deepEqual(new Set(rows.map(({ actor }) => actor)), new Set(['system admin']));
    assert.deepEqual(
      rows.map(({ action }) => action),
      [
        'organizations.create',
        'keys.create',
        'keys.delete',
        'domains.create',
        'domains.delete',
        'suppressions.create',
        'suppressions.export',
        'suppressions.delete',
        'quota.update',
        'members.create',
        'emails.retry',
      ],
    );
    assert.deepEqual(
      rows.slice(1, 3).map(({ target }) => target),
      [key['id'], key['id']],
    );
    const [add, , remove] = rows.filter(({ action }) => action.startsWith('suppressions.'));
    assert.deepEqual([add?.target, remove?.detail], [suppressed['id'], { email: 'a@example.net' }]);
    assert.deepEqual(rows.at(-1)?.detail, { status: 'failed', since });

    await printedWith(['erase', ...of, '--email', 'a@example.net'], stores);
    const erased = await list();
    assert.deepEqual([erased.at(-1)?.action, erased.at(-1)?.detail], ['erasures.create', {}]);
    assert.ok(!JSON.stringify(erased).includes('a@example.net'));
  });
});

describe('a command line that is not valid', () => {
  for (const [args, mistake, of] of [
    [
      ['organization'],
      'a command is missing after sendwright organization; there are create, list, retention, suspend, resume, allow-passwords',
      'organization',
    ],
    [['organization', 'delete'], "unknown command 'delete'", 'organization'],
    [['toString'], "unknown command 'toString'", ''],
    [['keyy', 'list'], "unknown command 'keyy' (Did you mean key?)", ''],
    [['organization', 'create'], "required option '--name <name>' not specified", 'organization create'],
    [
      ['organization', 'create', '--name', ''],
      "option '--name <name>' argument '' is invalid. It must not be empty.",
      'organization create',
    ],
    [
      ['key', 'create', '--organization', 'x', '--preset', 'all'],
      "option '--preset <preset>' argument 'all' is invalid. Allowed choices are full_access, sending_access, read_only.",
      'key create',
    ],
  ] as const) {
    it(`is refused with one line and the command for its help: ${args.join(' ')}`, () =>
      assertMisused(args, mistake, of));
  }
});

describe('the database of a command', () => {
  const list = (settings: Record<string, string>) => command(['organization', 'list'], settings);
  const MISSING =
    "DATABASE_URL is missing: URL of Sendwright's Postgres database, for example DATABASE_URL=postgres://sendwright:secret@localhost:5432/sendwright";
  const UNREACHABLE = 'the database cannot be reached: is it running, and is DATABASE_URL right?';

  it('is that of dev.json in SENDWRIGHT_HOME, unless DATABASE_URL is set', async (t) => {
    const home = await temporaryFolder(t);
    const write = (text: string) => writeFile(join(home, 'dev.json'), text);
    assertFailed(await list({ SENDWRIGHT_HOME: home }), MISSING);
    for (const text of ['', '{"database_url":"po', '{}', 'null', '{"database_url":5}']) {
      await write(text);
      assertFailed(await list({ SENDWRIGHT_HOME: home }), MISSING);
    }
    await write(JSON.stringify({ base_url: 'x', database_url: database.url }));
    const { code, out, err } = await list({ SENDWRIGHT_HOME: home });
    assert.deepEqual([code, err], [0, '']);
    assert.ok(Array.isArray(JSON.parse(out)));
    await write(JSON.stringify({ database_url: 'postgres://127.0.0.1:1/x' }));
    assertFailed(await list({ SENDWRIGHT_HOME: home }), UNREACHABLE);
    assert.equal((await list({ SENDWRIGHT_HOME: home, DATABASE_URL: database.url })).code, 0);
  });

  it('is refused with one line if its URL is malformed', async () => {
    const pattern = /^DATABASE_URL is malformed: URL of Sendwright's Postgres database, for example [^\n]+\n$/;
    assertFailed(await list({ DATABASE_URL: 'mysql://x' }), pattern);
  });

  for (const [name, change, sentence] of [
    ['cannot be reached', (url: URL) => (url.port = '1'), UNREACHABLE],
    ['has an unknown host', (url: URL) => (url.hostname = 'nowhere.invalid'), UNREACHABLE],
    [
      'does not exist',
      (url: URL) => (url.pathname = 'nothing_of_this_name'),
      'the server has no database of the name in DATABASE_URL',
    ],
  ] as const) {
    it(`is reported in one line if it ${name}`, async () => {
      const url = new URL(database.url);
      change(url);
      assertFailed(await list({ DATABASE_URL: url.href }), sentence);
    });
  }

  it('is reported in one line if it is read-only, also by migrate', async () => {
    const url = new URL(database.url);
    url.searchParams.set('options', '-c default_transaction_read_only=on');
    const settings = { DATABASE_URL: url.href };
    const sentence = 'the database is read-only: DATABASE_URL must name the primary, not a replica';
    assert.equal((await list(settings)).code, 0);
    assertFailed(await command(['organization', 'create', '--name', 'x'], settings), sentence);
    assertFailed(await runProcess([], settings, { program: 'migrate', input: '' }), sentence);
  });

  for (const [name, answer, reason] of [
    ['has a certificate that is not trusted', 'S', 'self-signed certificate'],
    ['does not support TLS', 'N', 'The server does not support SSL connections'],
  ] as const) {
    it(`is reported in one line with the remedy if it ${name}, also by migrate`, async (t) => {
      const url = await startTlsDatabase(t, answer);
      const outcomes = [
        await list({ DATABASE_URL: url }),
        await runProcess([], { DATABASE_URL: url }, { program: 'migrate', input: '' }),
      ];
      for (const outcome of outcomes) {
        const remedy = /; append sslmode=verify-full&sslrootcert=FILE to DATABASE_URL, [^\n]+\n$/;
        assertFailed(outcome, remedy);
        assert.ok(outcome.err.startsWith(`the TLS connection to the database failed: ${reason};`), outcome.err);
      }
    });
  }

  it('of an earlier version needs migrations, which one line states', async () => {
    const url = new URL(database.url);
    url.pathname = `${url.pathname}_earlier`;
    const name = url.pathname.slice(1);
    await database.pool.query(`CREATE DATABASE ${name} TEMPLATE template0`);
    try {
      await migrateDatabase(url.href, (await migrationNames()).slice(0, 12));
      assertFailed(await list({ DATABASE_URL: url.href }), 'the database lacks migrations: npm run migrate');
    } finally {
      await database.pool.query(`DROP DATABASE ${name} WITH (FORCE)`);
    }
  });

  it('gets the schema from migrate; exit codes are those of the process', async () => {
    const name = `${new URL(database.url).pathname.slice(1)}_empty`;
    const url = new URL(database.url);
    url.pathname = name;
    const settings = { DATABASE_URL: url.href };
    const migrate = () => runProcess([], settings, { program: 'migrate' });
    assertFailed(await migrate(), 'the server has no database of the name in DATABASE_URL');
    await database.pool.query(`CREATE DATABASE ${name}`);
    try {
      const listed = await runProcess(['organization', 'list'], settings);
      assertFailed(listed, 'the database lacks migrations: npm run migrate');
      const migrated = await migrate();
      assert.equal(migrated.code, 0, migrated.err);
      assert.match(migrated.out, /^Applied 0001-emails\.sql.*\.\n$/);
      assert.equal((await migrate()).out, 'The database is up to date.\n');
      assert.deepEqual(await runProcess(['organization', 'list'], settings), { code: 0, out: '[]\n', err: '' });
    } finally {
      await database.pool.query(`DROP DATABASE ${name} WITH (FORCE)`);
    }
  });
});
