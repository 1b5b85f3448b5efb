import { createHash } from 'node:crypto';
import { chown, lstat, mkdir, readlink, rename, rm, symlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { exists } from './cache.ts';
import { run, isFulfilled, type Account } from './command.ts';
import { SYSTEM_FOLDER, systemFolder } from './postgres-binaries.ts';
import { Problem } from './problem.ts';
import type { Progress } from './progress.ts';

const NAME = 'postgres';

/**
 * Returns the account that runs Postgres: undefined for our own, or, since Postgres refuses to run as root, the system's
 * `postgres` user, which is created if it does not exist.
 */
export async function postgresAccount(progress?: Pick<Progress, 'print'>): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const found = await lookUp();
  if (found) return found;
  try {
    await run('useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', NAME]);
  } catch (error) {
    throw new Problem(
      `Postgres does not run as root, and a user "${NAME}" for it cannot be made (${(error as Error).message}). ` +
        'Start as another user than root, or set DATABASE_URL to a Postgres server.',
    );
  }
  progress?.print(`  Made the system user "${NAME}", since Postgres does not run as root`);
  const made = await lookUp();
  if (made) return made;
  throw new Problem(`the user "${NAME}" was made but is not known to the system`);
}

async function lookUp(): Promise<Account | undefined> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', NAME]), run('id', ['-g', NAME])]);
    return { uid: Number(uid), gid: Number(gid) };
  } catch {
    return undefined;
  }
}

/**
 * Returns the folder for Postgres's data: `link` itself, or, if the account may not enter its parent, a folder under
 * /var/lib/sendwright, to which `link` then points.
 * @param link absolute path
 * @throws Problem if `link` contains a database that the account cannot use
 */
export async function dataFolder(link: string, account: Account | undefined, progress: Progress): Promise<string> {
  if (account === undefined) {
    await mkdir(link, { recursive: true, mode: 0o700 });
    return link;
  }
  const existing = await lstat(link).catch(() => undefined);
  if (existing?.isSymbolicLink()) {
    const target = await readlink(link);
    await make(target, account);
    return target;
  }
  if (existing === undefined) await make(link, account);
  if (await mayWrite(link, account)) return link;
  if (await exists(join(link, 'data'))) {
    throw new Problem(
      `The database in ${link} cannot be used by the user "${NAME}", which runs Postgres for root. ` +
        'Start as the user that made it, or move that folder away to begin with an empty one.',
    );
  }

  const home = dirname(link);
  const hash = createHash('sha256').update(home).digest('hex').slice(0, 12);
  const folder = join(SYSTEM_FOLDER, `${basename(dirname(home))}-${hash}`);
  // The data belongs to a deleted home, whose password is lost.
  await rm(`${folder}.old`, { recursive: true, force: true });
  await rename(folder, `${folder}.old`).catch(() => undefined);
  await systemFolder();
  await make(folder, account);
  if (!(await mayWrite(folder, account))) throw new Problem(`the user "${NAME}" cannot write to ${folder}`);
  await rm(link, { recursive: true });
  await symlink(folder, link);
  progress.print(`  Postgres keeps its data in ${folder}: its account cannot enter ${home}`);
  return folder;
}

async function make(folder: string, { uid, gid }: Account): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chown(folder, uid, gid);
}

function mayWrite(folder: string, account: Account): Promise<boolean> {
  return isFulfilled(run('/bin/sh', ['-c', 'test -w "$0" && test -x "$0"', folder], { account, cwd: '/' }));
}
