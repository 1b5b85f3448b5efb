import { chown, cp, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { postgresAccount } from '../../dev/environment/postgres-account.ts';

/** Left out of a copy, as https://www.postgresql.org/docs/18/continuous-archiving.html says: they belong to a running server. */
const LEFT_OUT = new Set(['postmaster.pid', 'postmaster.opts', 'pg_wal', 'pg_stat_tmp', 'pg_replslot', 'backup_label']);

/**
 * Copies a running cluster, all of its databases at one moment, as `pg_basebackup` does, whose program the embedded
 * Postgres lacks.
 * @param data the cluster's data directory
 * @param target a folder that is not there yet, and is one when this is done
 */
export async function baseBackup(adminUrl: string, data: string, target: string): Promise<void> {
  // Start and stop must be of one session.
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(`SELECT pg_backup_start('test', true)`);
    await mkdir(target, { recursive: true, mode: 0o700 });
    for (const name of await readdir(data)) if (!LEFT_OUT.has(name)) await copy(join(data, name), join(target, name));
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
    await writeFile(join(target, 'backup_label'), rows[0]?.labelfile ?? '');
    // What was written while files were copied: with it the copy becomes of one moment.
    await copy(join(data, 'pg_wal'), join(target, 'pg_wal'));
    for (const name of ['pg_stat_tmp', 'pg_replslot']) await mkdir(join(target, name), { mode: 0o700 });
  } finally {
    await client.end();
  }
}

/** A file that is gone meanwhile is one that the log tells the end of. */
async function copy(from: string, to: string): Promise<void> {
  await cp(from, to, {
    recursive: true,
    preserveTimestamps: true,
    filter: (path) => stat(path).then(Boolean, () => false),
  });
}

/** Postgres reads its own files only, also where it runs as an account of its own. */
async function own(folder: string): Promise<void> {
  const account = await postgresAccount();
  if (!account) return;
  for (const name of ['', ...(await readdir(folder, { recursive: true }))]) {
    await chown(join(folder, name), account.uid, account.gid);
  }
}

/** Puts a copy where a cluster is to be, in a folder that is not there yet. */
export async function restoreBackup(backup: string, data: string): Promise<void> {
  await mkdir(dirname(data), { mode: 0o700 });
  await cp(backup, data, { recursive: true, preserveTimestamps: true });
  await own(dirname(data));
}
