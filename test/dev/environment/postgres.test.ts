import assert from 'node:assert/strict';
import { access, chmod, chown, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { makePorts } from '../../../dev/environment/ports.ts';
import {
  adminUrl,
  type Cluster,
  createDatabase,
  postgresPart,
  prepareCluster,
  removeStalePidFile,
  runningPostmaster,
} from '../../../dev/environment/postgres.ts';
import { Problem } from '../../../dev/environment/problem.ts';
import { makeSupervisor, type Processes } from '../../../dev/environment/supervisor.ts';
import { makePool } from '../../../src/store/postgres/pool.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/folder.ts';

const quiet = { print: () => undefined };
const progress = { ...quiet, step: <T>(_: string, work: (step: never) => Promise<T>) => work(undefined as never) };

/** A home for a cluster that the account of Postgres may enter, and what starts it there. */
async function setUp(t: TestContext) {
  const updates: Processes[] = [];
  const supervisor = makeSupervisor(quiet, (processes) => updates.push(processes));
  t.after(() => supervisor.stop());
  const folder = await temporaryFolder(t);
  await chmod(folder, 0o755);
  const start = async (cluster: Cluster) => {
    const port = await makePorts(join(folder, 'ports')).choose(0);
    await supervisor.start('postgres', postgresPart(cluster, port, join(folder, 'postgres.log')));
    return port;
  };
  const pid = () => updates.at(-1)?.postgres?.pid ?? 0;
  return { home: join(folder, 'postgres'), start, pid, supervisor };
}

test('creates a cluster once, which keeps committed rows after SIGKILL', async (t) => {
  const { home, start, pid, supervisor } = await setUp(t);
  const cluster = await prepareCluster(home, 'a password', progress);
  assert.deepEqual(await readdir(home), ['data']);
  const port = await start(cluster);
  assert.deepEqual(await runningPostmaster(cluster), { pid: pid(), mark: cluster.data });

  const url = await createDatabase(adminUrl(cluster, port), cluster.password);
  assert.equal(await createDatabase(adminUrl(cluster, port), cluster.password), url);
  const pool = makePool(url, 'test', 2, () => undefined);
  t.after(() => pool.end());
  const { rows } = await pool.query<{ is_superuser: boolean; sorts: boolean; durable: string }>(
    `SELECT usesuper AS is_superuser, 'Z' < 'a' AS sorts, current_setting('fsync') AS durable
     FROM pg_user WHERE usename = current_user`,
  );
  assert.deepEqual(rows, [{ is_superuser: false, sorts: true, durable: 'on' }]);
  await pool.query('CREATE TABLE kept AS SELECT 1 AS one');

  const killed = pid();
  process.kill(killed, 'SIGKILL');
  await eventually('it serves again', () =>
    pool.query('SELECT one FROM kept').then(
      ({ rowCount }) => rowCount === 1 && pid() !== killed,
      () => false,
    ),
  );
  await supervisor.stop();
  assert.equal(await runningPostmaster(cluster), undefined);
  assert.deepEqual(await prepareCluster(home, 'ignored', progress), { ...cluster, password: 'ignored' });
});

test('reports a lost password of the cluster', async (t) => {
  const { home, start } = await setUp(t);
  const cluster = await prepareCluster(home, 'a password', progress);
  await assert.rejects(
    start({ ...cluster, password: 'another one' }),
    (error: Error) => error instanceof Problem && error.message.includes(cluster.data),
  );
});

test('removes a pid file that names an unrelated process', async (t) => {
  const { home, start } = await setUp(t);
  const cluster = await prepareCluster(home, 'a password', progress);
  await writeFile(join(cluster.data, 'postmaster.pid'), `${process.pid}\n${cluster.data}\n`);
  assert.equal(await runningPostmaster(cluster), undefined);
  await removeStalePidFile(cluster);
  await start(cluster);
  await removeStalePidFile(cluster);
  assert.match(await readFile(join(cluster.data, 'postmaster.pid'), 'utf8'), /^\d+\n/);
});

const RUNS_AS_ROOT = process.getuid?.() === 0;
test('refuses data of a user other than the account of Postgres, and keeps it', { skip: !RUNS_AS_ROOT }, async (t) => {
  const { home } = await setUp(t);
  const version = join(home, 'data/PG_VERSION');
  await mkdir(join(home, 'data'), { recursive: true });
  await writeFile(version, '18\n');
  await chown(home, 12_345, 12_345);
  await chmod(home, 0o700);
  await assert.rejects(
    prepareCluster(home, 'a password', progress),
    (error: Error) => error instanceof Problem && error.message.includes(home),
  );
  await access(version);
});

test('refuses data of another major version', async (t) => {
  const { home } = await setUp(t);
  const { data } = await prepareCluster(home, 'a password', progress);
  await writeFile(join(data, 'PG_VERSION'), '17\n');
  await assert.rejects(prepareCluster(home, 'a password', progress), /was made by Postgres 17 and this is Postgres 18/);
});
