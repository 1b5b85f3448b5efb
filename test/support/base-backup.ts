import { chown, cp, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { postgresAccount } from '../../dev/environment/postgres-account.ts';

/** Files of the running server (https://www.postgresql.org/docs/18/continuous-archiving.html). */
const LEFT_OUT = new Set(['postmaster.pid', 'postmaster.opts', 'pg_wal', 'pg_stat_tmp', 'pg_replslot', 'backup_label']);

/**
 * Copies a running cluster consistently, like `pg_basebackup`, which the embedded Postgres lacks.
 * @param data the cluster's data directory
 * @param target a folder that this creates
 */
export async function baseBackup(adminUrl: string, data: string, target: string): Promise<void> {
  // Start and stop need the same session.
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(`SELECT pg_backup_start('test', true)`);
    await mkdir(target, { recursive: true, mode: 0o700 });
    for (const name of await readdir(data)) if (!LEFT_OUT.has(name)) await copy(join(data, name), join(target, name));
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
    await writeFile(join(target, 'backup_label'), rows[0]?.labelfile ?? '');
    // The WAL written during the copy makes it consistent.
    await copy(join(data, 'pg_wal'), join(target, 'pg_wal'));
    for (const name of ['pg_stat_tmp', 'pg_replslot']) await mkdir(join(target, name), { mode: 0o700 });
  } finally {
    await client.end();
  }
}

/** Skips files that were deleted meanwhile, which the WAL records. */
async function copy(from: string, to: string): Promise<void> {
  await cp(from, to, {
    recursive: true,
    preserveTimestamps: true,
    filter: (path) => stat(path).then(Boolean, () => false),
  });
}

/** Gives a folder to the account of Postgres. */
async function own(folder: string): Promise<void> {
  const account = await postgresAccount();
  if (!account) return;
  for (const name of ['', ...(await readdir(folder, { recursive: true }))]) {
    await chown(join(folder, name), account.uid, account.gid);
  }
}

/** Copies a backup to the data directory of a new cluster. */
export async function restoreBackup(backup: string, data: string): Promise<void> {
  await mkdir(dirname(data), { mode: 0o700 });
  await cp(backup, data, { recursive: true, preserveTimestamps: true });
  await own(dirname(data));
}
