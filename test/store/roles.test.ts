import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import pg from 'pg';
import pino from 'pino';
import { startService, type Service } from '../http/service.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import { migrate } from '../../src/store/postgres/migrate.ts';
import { listPartitions } from '../../src/store/upkeep/partitions.ts';
import { addPartitions, expireEmails } from '../../src/upkeep/partitions.ts';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { ROOT } from '../support/root.ts';

const SUFFIX = randomBytes(4).toString('hex');
const DAY = 86_400_000;
const EMPTY = `empty_${SUFFIX}`;
const ROLES = { app: `app_${SUFFIX}`, migrate: `migrate_${SUFFIX}`, temporal: `temporal_${SUFFIX}` };
/** A role that is none of ours, as for reports. */
const OTHER = `other_${SUFFIX}`;

describe('deploy/roles.sql', () => {
  /** Of this version's schema, made by the superuser, as an installation from before the roles. */
  let ours: TestDatabase;
  let temporals: TestDatabase;
  let app: Pool;
  before(async () => {
    [ours, temporals] = [await testDatabase(), await testDatabase()];
    await temporals.pool.query('CREATE TABLE executions (id int)');
    for (let i = 0; i < 2; i++) {
      await apply(ours.url, 'migrate');
      await apply(temporals.url, 'temporal');
    }
    app = makePool(as(ours.url, ROLES.app), 'test', 5, () => undefined);
  });
  after(async () => {
    await app.end();
    const { pool, url } = ours;
    const server = new pg.Client({ connectionString: url.replace(/\/[^/?]*(\?|$)/, '/postgres$1') });
    await server.connect();
    await Promise.all([pool.end(), temporals.pool.end()]);
    for (const { url: each } of [ours, temporals]) {
      await server.query(`DROP DATABASE ${new URL(each).pathname.slice(1)} WITH (FORCE)`);
    }
    await server.query(`DROP DATABASE IF EXISTS ${EMPTY} WITH (FORCE)`);
    for (const role of [...Object.values(ROLES), OTHER]) await server.query(`DROP ROLE ${role}`);
    await server.end();
  });

  async function apply(url: string, owner: string): Promise<void> {
    const names = Object.entries(ROLES).map(
      ([role, name]) => `-c roles.${role}=${name} -c roles.${role}_password=secret`,
    );
    const client = new pg.Client({ connectionString: url, options: `-c roles.owner=${owner} ${names.join(' ')}` });
    await client.connect();
    await client.query(await readFile(`${ROOT}deploy/roles.sql`, 'utf8'));
    await client.end();
  }

  function as(url: string, role: string): string {
    const changed = new URL(url);
    changed.username = role;
    changed.password = 'secret';
    return changed.href;
  }

  async function refuses(pool: Pool, sql: string): Promise<void> {
    await assert.rejects(pool.query(sql), (error) => error instanceof pg.DatabaseError && error.code === '42501', sql);
  }

  it('creates roles that are no superusers and cannot create databases or roles', async () => {
    const { rows } = await ours.pool.query(
      `SELECT rolname FROM pg_roles
       WHERE rolname = ANY ($1) AND NOT (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls)`,
      [Object.values(ROLES)],
    );
    assert.equal(rows.length, 3);
  });

  it('lets the application serve requests, and neither change the schema nor run programs', async () => {
    let service: Service | undefined;
    try {
      service = await startService({ pool: app });
      // Organizations of tests are made in the service's own database; this one is made in the other.
      const { id, api_key: key } = await createOrganization(app, 'Roles');
      await registerDomainForOperator(app, id, 'roles.example', true);
      const json = {
        from: 'a@roles.example',
        to: 'b@example.net',
        subject: 's',
        text: 't',
        tags: [{ name: 'a', value: 'b' }],
      };
      const headers = { 'idempotency-key': 'once' };
      assert.equal((await service.call('POST', '/v1/emails', { key, json, headers })).status, 202);
      const batch = await service.call('POST', '/v1/emails/batch', { key, json: { emails: [json, json] } });
      assert.equal(batch.status, 202, batch.text);
      assert.equal((await service.call('GET', '/v1/emails', { key })).status, 200);
    } finally {
      await service?.close();
    }
    // Partitions are the exception: upkeep adds and drops them by functions of the owner.
    const retention = { pool: app, emailRetentionDays: 31, log: pino({ level: 'silent' }) };
    assert.ok((await addPartitions(app, 31, Date.now() + 60 * DAY)) > 1);
    await expireEmails(retention, Date.now() + 31 * DAY);
    assert.equal((await expireEmails(retention, Date.now() + 31 * DAY)).next, null);
    assert.notEqual((await listPartitions(app, 'email_bodies'))[0]?.suffix, 'first');
    for (const sql of [
      'CREATE TABLE mine (id int)',
      'DROP TABLE emails',
      'ALTER TABLE emails ADD COLUMN mine int',
      'TRUNCATE emails',
      `COPY emails TO PROGRAM 'true'`,
      `SELECT pg_read_file('/etc/passwd')`,
      `CREATE ROLE mine_${SUFFIX}`,
    ])
      await refuses(app, sql);
  });

  it('lets no other role add or drop partitions', async () => {
    const { pool, url } = ours;
    await pool.query(`CREATE ROLE ${OTHER} LOGIN PASSWORD 'secret'`);
    await pool.query(`GRANT CONNECT ON DATABASE ${new URL(url).pathname.slice(1)} TO ${OTHER}`);
    const other = makePool(as(url, OTHER), 'test', 1, () => undefined);
    await refuses(other, `SELECT drop_partition('emails', 'first')`);
    await refuses(other, `SELECT add_partition('emails', 'id', 'x', 'a', 'b')`);
    await other.end();
  });

  it('runs migrations as their own role, and lets the application use what they create', async () => {
    await ours.pool.query(`CREATE DATABASE ${EMPTY}`);
    const empty = new URL(ours.url);
    empty.pathname = `/${EMPTY}`;
    await apply(empty.href, 'migrate');
    assert.ok((await migrate(as(empty.href, ROLES.migrate))).length > 12);
    const pool = makePool(as(empty.href, ROLES.app), 'test', 1, () => undefined);
    await createOrganization(pool, 'Empty');
    await refuses(pool, 'DROP TABLE emails');
    await pool.end();
  });

  it("keeps the application out of Temporal's databases, and Temporal out of ours", async () => {
    for (const [url, role] of [
      [temporals.url, ROLES.app],
      [temporals.url, ROLES.migrate],
      [ours.url, ROLES.temporal],
    ] as const) {
      const pool = makePool(as(url, role), 'test', 1, () => undefined);
      await refuses(pool, 'SELECT 1');
      await pool.end();
    }
    const temporal = makePool(as(temporals.url, ROLES.temporal), 'test', 1, () => undefined);
    await temporal.query('CREATE TABLE more (id int); ALTER TABLE executions ADD COLUMN more int');
    await temporal.end();
  });
});
