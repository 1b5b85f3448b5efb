import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, copyFile, cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rootCertificates } from 'node:tls';
import { promisify } from 'node:util';
import { buildServer } from '../../dev/production/servers.ts';
import { createOnce, cacheFolder, exists } from '../../dev/environment/cache.ts';
import { findTemporalCli } from '../../dev/environment/temporal-cli.ts';
import { NO_PROGRESS } from '../faults/stack.ts';
import { isInstalled } from './engine.ts';

const run = promisify(execFile);
const RECIPES = fileURLToPath(new URL('standins/', import.meta.url));
/** Marks a stand-in, so that a later run does not take it for the real image. */
export const LABEL = 'sendwright.stand-in';

/** The base of a stand-in, and a function that prepares files for it. */
interface StandIn {
  readonly target: string;
  readonly base: 'bookworm' | 'forky';
  readonly prepare?: (folder: string, tag: string) => Promise<void>;
}

const STAND_INS: Readonly<Record<string, StandIn>> = {
  node: { target: 'node', base: 'bookworm', prepare: prepareNode },
  postgres: { target: 'postgres', base: 'forky' },
  'temporalio/server': { target: 'temporal-server', base: 'forky', prepare: prepareServer },
  'temporalio/admin-tools': { target: 'temporal-tools', base: 'forky', prepare: prepareTools },
  'temporalio/ui': { target: 'temporal-ui', base: 'forky', prepare: prepareUi },
  caddy: { target: 'caddy', base: 'forky' },
  'prom/prometheus': { target: 'prometheus', base: 'forky' },
};

export function hasStandIn(image: string): boolean {
  return nameOf(image) in STAND_INS;
}

/**
 * Builds the stand-in of an image under its name.
 * @param folder where bases are kept
 * @throws Error that names the program that is missing on this machine
 */
export async function buildStandIn(image: string, folder: string): Promise<void> {
  const { target, base, prepare } = STAND_INS[nameOf(image)] as StandIn;
  await importBase(base, join(folder, 'bases'));
  const context = join(folder, 'stand-ins', target);
  await rm(context, { recursive: true, force: true });
  await cp(RECIPES, context, { recursive: true });
  await prepare?.(context, image.slice(nameOf(image).length + 1));
  const label = ['--label', `${LABEL}=true`];
  await run('docker', ['build', '--quiet', ...label, '--target', target, '--tag', image, context], {
    maxBuffer: 100_000_000,
  });
}

function nameOf(image: string): string {
  return image.replace(/:[^:/]*$/, '');
}

/** Debian's smallest system as an image. The result of debootstrap is cached. */
async function importBase(suite: string, folder: string): Promise<void> {
  const image = `standin-${suite}`;
  const isImported = await run('docker', ['image', 'inspect', image]).then(
    () => true,
    () => false,
  );
  if (isImported) return;
  const archive = join(folder, `${suite}.tar`);
  if (!(await exists(archive))) {
    if (!isInstalled('debootstrap')) throw new Error('debootstrap is not installed: it makes the base of stand-ins');
    await createOnce(
      archive,
      async (workspace) => {
        const system = join(workspace, 'system');
        // An older debootstrap does not know every suite; all of them are installed as sid is.
        const [mirror, script] = ['http://deb.debian.org/debian', '/usr/share/debootstrap/scripts/sid'];
        await run('debootstrap', ['--variant=minbase', suite, system, mirror, script], { maxBuffer: 100_000_000 });
        const left = ['./proc/*', './sys/*', './dev/*', './var/cache/apt/*', './var/lib/apt/lists/*'];
        const file = join(workspace, 'system.tar');
        await run('tar', ['-C', system, '-cf', file, ...left.map((path) => `--exclude=${path}`), '.']);
        return file;
      },
      { onWait: () => undefined },
    );
  }
  await run('docker', ['import', archive, image]);
}

/** @param tag such as `22-bookworm-slim`: the latest release of that major version is taken */
async function prepareNode(folder: string, tag: string): Promise<void> {
  const program = `node-${process.platform}-${process.arch}`;
  const node = await latestVersion(program, String(Number.parseInt(tag, 10)));
  const npm = await latestVersion('npm', '10');
  for (const [name, version] of [
    [program, node],
    ['npm', npm],
  ] as const) {
    await run('npm', ['pack', '--silent', '--pack-destination', folder, `${name}@${version}`]);
    await mkdir(join(folder, name));
    const archive = join(folder, `${name}-${version}.tgz`);
    await run('tar', ['-xzf', archive, '-C', join(folder, name), '--strip-components=1']);
  }
  await cp(join(folder, program, 'bin', 'node'), join(folder, 'node', 'bin', 'node'));
  await cp(join(folder, 'npm'), join(folder, 'node', 'lib', 'node_modules', 'npm'), { recursive: true });
  await writeFile(join(folder, 'authorities.crt'), authorities());
}

/** Certificate authorities that this process trusts. */
function authorities(): string {
  const named = process.env['NODE_EXTRA_CA_CERTS'];
  return [...rootCertificates, ...(named ? [readFileSync(named, 'utf8')] : [])].join('\n');
}

async function latestVersion(name: string, major: string): Promise<string> {
  const { stdout } = await run('npm', ['view', `${name}@${major}`, 'version', '--json']);
  const versions = [JSON.parse(stdout) as string | string[]].flat();
  const latest = versions.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1);
  if (latest === undefined) throw new Error(`npm has no ${name}@${major}`);
  return latest;
}

async function prepareServer(folder: string): Promise<void> {
  await program(
    await buildServer('temporal-server', 'go.temporal.io/server/cmd/server', NO_PROGRESS),
    folder,
    'temporal-server',
  );
}

async function prepareTools(folder: string): Promise<void> {
  const sql = await buildServer('temporal-sql-tool', 'go.temporal.io/server/cmd/tools/sql', NO_PROGRESS);
  await program(sql, folder, 'temporal-sql-tool');
  await program(await findTemporalCli(process.env, NO_PROGRESS), folder, 'temporal');
}

/** Temporal's web UI, built by Go from the module of its version. */
async function prepareUi(folder: string, version: string): Promise<void> {
  const kept = join(cacheFolder(process.env), `temporal-ui-${version}-${process.platform}-${process.arch}`);
  await createOnce(
    kept,
    async (workspace) => {
      const { stdout } = await run('go', [
        ...['mod', 'download', '-json', `github.com/temporalio/ui-server/v2@v${version}`],
      ]);
      const { Dir } = JSON.parse(stdout) as { Dir: string };
      const source = join(workspace, 'source');
      await cp(Dir, source, { recursive: true });
      await run('chmod', ['-R', 'u+w', source]);
      const destination = join(workspace, 'ui');
      await mkdir(join(destination, 'config'), { recursive: true });
      await run(
        'go',
        ['build', '-trimpath', '-ldflags', '-s -w', '-o', join(destination, 'ui-server'), './cmd/server'],
        {
          cwd: source,
          env: { ...process.env, CGO_ENABLED: '0' },
          maxBuffer: 100_000_000,
        },
      );
      await copyFile(join(source, 'config', 'docker.yaml'), join(destination, 'config', 'docker.yaml'));
      return destination;
    },
    { onWait: () => undefined },
  );
  await cp(kept, join(folder, 'ui'), { recursive: true });
}

async function program(from: string, folder: string, name: string): Promise<void> {
  await copyFile(from, join(folder, name));
  await chmod(join(folder, name), 0o755);
}
