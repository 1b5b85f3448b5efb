import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parseApiKey } from '../../src/accounts/keys.ts';
import { findKey } from '../../src/store/accounts/keys.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { assertFailed, assertMisused, assertRefuses, command, migrate } from './command-line.ts';

const ABSENT = `org_${'0'.repeat(26)}`;

let database: TestDatabase;
let folder: string;
before(async () => {
  database = await testDatabase();
  folder = await mkdtemp(join(tmpdir(), 'admin-'));
});
after(async () => {
  await rm(folder, { recursive: true });
  await database.drop();
});

const admin = (...args: string[]) => command(args, { DATABASE_URL: database.url });

/** The JSON on standard output of a command that went well. */
async function printed<T = Record<string, unknown>>(...args: string[]): Promise<T> {
  const { code, out, err } = await admin(...args);
  assert.deepEqual([code, err], [0, ''], `${args.join(' ')}: ${err}`);
  return JSON.parse(out) as T;
}

describe('organization, key and domain', { concurrency: 2 }, () => {
  it('organization create --name N → {id, name, api_key}', async () => {
    const made = await printed('organization', 'create', '--name', 'Ada & Söhne');
    assert.deepEqual(Object.keys(made), ['id', 'name', 'api_key']);
    assert.equal(made['name'], 'Ada & Söhne');
    const key = parseApiKey(String(made['api_key']));
    assert.equal((await findKey(database.pool, key?.id ?? ''))?.org_id, made['id']);
    const listed = await printed<Record<string, unknown>[]>('organization', 'list');
    assert.ok(listed.some(({ id, name }) => id === made['id'] && name === 'Ada & Söhne'));
  });

  it('domain add --organization O --name D [--verified], key create … → {id, api_key}, key revoke --key K', async () => {
    const { id } = await printed<{ id: string }>('organization', 'create', '--name=Keys');
    const pending = await printed('domain', 'add', '--organization', id, '--name', 'Pending.example');
    const { id: domainId, created_at: createdAt, next_check_at: next, records, ...rest } = pending;
    assert.match(String(domainId), /^dm_/);
    assert.equal(createdAt, next, 'it is checked at once');
    const unchecked = { trusted: false, verified_at: null, last_checked_at: null };
    assert.deepEqual(rest, { org_id: id, name: 'pending.example', status: 'pending', ...unchecked });
    assert.deepEqual(
      (records as { record: string }[]).map(({ record }) => record),
      ['OWNERSHIP', 'SPF', 'DMARC'],
    );
    const verified = await printed('domain', 'add', '--verified', '--organization', id, '--name', 'bücher.example');
    assert.deepEqual([verified['name'], verified['status']], ['xn--bcher-kva.example', 'verified']);

    const full = await printed<{ id: string; api_key: string }>('key', 'create', '--organization', id);
    assert.deepEqual(Object.keys(full), ['id', 'api_key']);
    assert.equal((await findKey(database.pool, full.id))?.preset, 'full_access');
    const domains = ['--domain', 'pending.example', '--domain', 'bücher.example'];
    const preset = ['--preset', 'sending_access'];
    const limited = await printed<{ id: string }>('key', 'create', '--organization', id, ...preset, ...domains);
    const stored = await findKey(database.pool, limited.id);
    assert.equal(stored?.preset, 'sending_access');
    assert.deepEqual([...(stored.domain_ids ?? [])].sort(), [domainId, verified['id']].sort());

    const list = () => printed<Record<string, unknown>[]>('key', 'list', '--organization', id);
    const [listed, ...others] = await list();
    assert.deepEqual([listed?.['id'], listed?.['preset'], others.length], [limited.id, 'sending_access', 2]);
    assert.ok(!JSON.stringify(await list()).includes(parseApiKey(full.api_key)?.secret ?? '?'), 'without secrets');
    assert.deepEqual(await printed('key', 'revoke', '--key', full.api_key), { id: full.id });
    assert.deepEqual(await printed('key', 'remove', '--key', limited.id), { id: limited.id });
    assert.equal((await list()).length, 1);
    const absent = await admin('key', 'list', '--organization', ABSENT);
    assertFailed(absent, `organization: there is no organization ${ABSENT}`);
    assert.equal(await findKey(database.pool, full.id), undefined);
    assert.equal(await findKey(database.pool, limited.id), undefined);
  });

  it('quota set --organization O --monthly N|none tells the quota and what is used of it', async () => {
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
    assertMisused(await admin(...set, '-5'), mistake('-5'), 'quota set');
    for (const monthly of ['', '-1', '1.5', '1e3', 'x', '1'.repeat(16)]) {
      await assertRefuses([...set, monthly], mistake(monthly), 'quota set');
    }
  });

  it('organization suspend --organization O [--reason R] and resume, each recorded in the audit log', async () => {
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
    [['organization', 'create', '--name', 'a\nb'], 'name: must not hold control characters or line breaks'],
    [['key', 'create', '--organization', ABSENT], `organization: there is no organization ${ABSENT}`],
    [['domain', 'add', '--organization', 'x', '--name', 'a.example'], 'organization: there is no organization x'],
    [['key', 'revoke', '--key', 'x'], 'key: there is no such key'],
  ] as const) {
    it(`a mistake is one sentence: ${args.join(' ').replace('\n', '\\n')}`, async () => {
      assertFailed(await admin(...args), sentence);
    });
  }

  it('a domain that is taken, that is none, and that a key may not have', async () => {
    const { id } = await printed<{ id: string }>('organization', 'create', '--name', 'Domains');
    const add = (name: string) => admin('domain', 'add', '--organization', id, '--name', name, '--verified');
    assert.equal((await add('taken.example')).code, 0);
    assertFailed(await add('taken.example'), 'name: the domain taken.example is registered already');
    assertFailed(await add('nonsense'), 'name: nonsense is not a domain name');
    assertFailed(
      await admin('key', 'create', '--organization', id, '--domain', 'other.example'),
      'domain: the organization has no domain other.example',
    );
  });
});

describe('suppression', () => {
  it('add, remove, list', async () => {
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

  it('of an organization that does not exist', async () => {
    const sentence = `organization: there is no organization ${ABSENT}`;
    for (const action of ['add', 'remove']) {
      assertFailed(await admin('suppression', action, '--organization', ABSENT, '--email', 'a@example.net'), sentence);
    }
    assertFailed(await admin('suppression', 'list', '--organization', ABSENT), sentence);
  });
});

describe('the audit log', () => {
  it('has what was done on the command line', async () => {
    const { id } = await printed<{ id: string }>('organization', 'create', '--name=Audited');
    const of = ['--organization', id];
    const key = await printed('key', 'create', ...of, '--preset', 'read_only');
    await printed('key', 'revoke', '--key', String(key['api_key']));
    await printed('domain', 'add', ...of, '--name', 'audited.example', '--verified');
    await printed('domain', 'remove', ...of, '--name', 'audited.example');
    await printed('suppression', 'add', ...of, '--email', 'a@example.net');
    await printed('suppression', 'list', ...of);
    await printed('suppression', 'remove', ...of, '--email', 'a@example.net');
    await printed('quota', 'set', ...of, '--monthly', '5');
    await printed('user', 'create', ...of, '--email', 'audited@example.net');
    const { rows } = await database.pool.query<{ action: string; actor: string; target: string | null }>(
      `SELECT action, actor_kind || ' ' || actor_id AS actor, target FROM audit_log WHERE org_id = $1 ORDER BY at, id`,
      [id],
    );
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
      ],
    );
    assert.deepEqual(
      rows.slice(1, 3).map(({ target }) => target),
      [key['id'], key['id']],
    );
  });
});

describe(
  'a command line that is not valid is refused with one line and a pointer to the help',
  { concurrency: 2 },
  () => {
    const GROUPS =
      'send, emails, webhooks, organization, quota, key, user, domain, number, template, webhook, suppression, erase, ' +
      'after-restore, secrets';
    for (const [args, mistake, of] of [
      [[], `a command is missing after sendwright; there are ${GROUPS}`, ''],
      [
        ['organization'],
        'a command is missing after sendwright organization; there are create, list, retention, suspend, resume',
        'organization',
      ],
      [['organization', 'delete'], "unknown command 'delete'", 'organization'],
      [
        ['organization', 'list', 'x'],
        "too many arguments for 'list'. Expected 0 arguments but got 1.",
        'organization list',
      ],
      [['toString'], "unknown command 'toString'", ''],
      [['keyy', 'list'], "unknown command 'keyy' (Did you mean key?)", ''],
      [['organization', 'create'], "required option '--name <name>' not specified", 'organization create'],
      [
        ['organization', 'create', '--name', ''],
        "option '--name <name>' argument '' is invalid. It must not be empty.",
        'organization create',
      ],
      [['organization', 'create', '--name'], "option '--name <name>' argument missing", 'organization create'],
      [
        ['organization', 'create', '--nam', 'x', '--name', 'y'],
        "unknown option '--nam' (Did you mean --name?)",
        'organization create',
      ],
      [['organization', 'list', '--name', 'x'], "unknown option '--name'", 'organization list'],
      [['key', 'create'], "required option '--organization <id>' not specified", 'key create'],
      [['key', 'revoke'], "required option '--key <key>' not specified", 'key revoke'],
      [
        ['key', 'create', '--organization', 'x', '--preset', 'all'],
        "option '--preset <preset>' argument 'all' is invalid. Allowed choices are full_access, sending_access, read_only.",
        'key create',
      ],
      [['domain', 'add', '--organization', 'x'], "required option '--name <domain>' not specified", 'domain add'],
      [['user', 'create', '--organization', 'x'], "required option '--email <address>' not specified", 'user create'],
      [
        ['suppression', 'remove', '--email', 'a@example.net'],
        "required option '--organization <id>' not specified",
        'suppression remove',
      ],
      [
        ['webhook', 'remove', '--organization', 'x'],
        "required option '--webhook <id>' not specified",
        'webhook remove',
      ],
    ] as const) {
      it(args.join(' ') || 'nothing', async () => assertRefuses(args, mistake, of));
    }
  },
);

describe('the database', { concurrency: 2 }, () => {
  const list = (env: Record<string, string>) => command(['organization', 'list'], env);
  const home = async (name: string, dev: string) => {
    const path = join(folder, name);
    await mkdir(path);
    await writeFile(join(path, 'dev.json'), dev);
    return path;
  };
  const MISSING =
    "DATABASE_URL is missing: URL of Sendwright's Postgres database, for example DATABASE_URL=postgres://sendwright:secret@localhost:5432/sendwright";
  const UNREACHABLE = 'the database cannot be reached: is it running, and is DATABASE_URL right?';

  it('is that of DATABASE_URL', async () => {
    assert.equal((await list({ DATABASE_URL: database.url })).code, 0);
  });

  it('else that of the dev.json in SENDWRIGHT_HOME', async () => {
    const running = await home('running', JSON.stringify({ base_url: 'x', database_url: database.url }));
    const { code, out, err } = await list({ SENDWRIGHT_HOME: running });
    assert.deepEqual([code, err], [0, '']);
    assert.ok(Array.isArray(JSON.parse(out)));
  });

  it('of DATABASE_URL when there are both', async () => {
    const other = await home('other', JSON.stringify({ database_url: 'postgres://127.0.0.1:1/x' }));
    assert.equal((await list({ SENDWRIGHT_HOME: other, DATABASE_URL: database.url })).code, 0);
    assertFailed(await list({ SENDWRIGHT_HOME: other }), UNREACHABLE);
  });

  it('is missing when nothing tells of one', async () => {
    assertFailed(await list({ SENDWRIGHT_HOME: join(folder, 'nowhere') }), MISSING);
    for (const [name, dev] of Object.entries({
      empty: '',
      half: '{"database_url":"po',
      none: '{}',
      null: 'null',
      five: '{"database_url":5}',
    })) {
      assertFailed(await list({ SENDWRIGHT_HOME: await home(name, dev) }), MISSING);
    }
  });

  it('a setting that is malformed is told', async () => {
    const { err } = await list({ DATABASE_URL: 'mysql://x' });
    assert.match(err, /^DATABASE_URL is malformed: URL of Sendwright's Postgres database, for example [^\n]+\n$/);
  });

  for (const [what, change, sentence] of [
    ['that cannot be reached', (url: URL) => (url.port = '1'), UNREACHABLE],
    ['of no such host', (url: URL) => (url.hostname = 'nowhere.invalid'), UNREACHABLE],
    [
      'that does not exist',
      (url: URL) => (url.pathname = 'nothing_of_this_name'),
      'the server has no database of the name in DATABASE_URL',
    ],
  ] as const) {
    it(`a database ${what} is told in one sentence, by admin and by migrate`, async () => {
      const url = new URL(database.url);
      change(url);
      assertFailed(await list({ DATABASE_URL: url.href }), sentence);
      assertFailed(await migrate({ DATABASE_URL: url.href }), sentence);
    });
  }

  it('one without our schema is told, and migrate makes it', async () => {
    const name = `${new URL(database.url).pathname.slice(1)}_empty`;
    const url = new URL(database.url);
    url.pathname = name;
    await database.pool.query(`CREATE DATABASE ${name}`);
    try {
      const env = { DATABASE_URL: url.href };
      assertFailed(await list(env), 'the database lacks migrations: npm run migrate');
      const migrated = await migrate(env);
      assert.equal(migrated.code, 0, migrated.err);
      assert.match(migrated.out, /^Applied 0001-emails\.sql.*\.\n$/);
      assert.equal((await migrate(env)).out, 'The database is up to date.\n');
      assert.deepEqual(JSON.parse((await list(env)).out), []);
    } finally {
      await database.pool.query(`DROP DATABASE ${name} WITH (FORCE)`);
    }
  });
});
