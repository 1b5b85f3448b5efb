/**
 * Runs before `npm start` and `npm test`. Installs the dependencies of a fresh clone, or of one whose package-lock.json has
 * changed. Plain JavaScript without dependencies, since none may be installed yet.
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { clearInterval, setInterval } from 'node:timers';
import { fileURLToPath } from 'node:url';
// A named import would fail on a Node without parseEnv, before `nodeProblem` reports it.
import util from 'node:util';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const PROGRESS_INTERVAL_MS = 5_000;
/** As in dev/environment/lock.ts: a running `npm start` touches its lock more often. */
const STALE_AFTER_MS = 20_000;

function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'));
}

/** Returns a sentence if this version of Node is older than package.json's `engines` require. */
function nodeProblem() {
  const needed = readJson('package.json').engines.node.replace('>=', '');
  const [major, minor] = needed.split('.').map(Number);
  const [haveMajor, haveMinor] = process.versions.node.split('.').map(Number);
  if (haveMajor > major || (haveMajor === major && haveMinor >= minor)) return undefined;
  return `Sendwright needs Node ${needed} or newer; this is ${process.versions.node} (${process.execPath})`;
}

/**
 * Returns why node_modules does not match package-lock.json. npm records what it installed in its own lock file, which it
 * writes last, so an interrupted installation has none.
 */
function reasonToInstall() {
  let installed;
  try {
    installed = readJson('node_modules/.package-lock.json').packages;
  } catch {
    return 'they are missing';
  }
  for (const [path, wanted] of Object.entries(readJson('package-lock.json').packages)) {
    if (path === '' || wanted.link) continue;
    const found = installed[path];
    if (found ? !sameVersion(found, wanted) : neededHere(wanted)) return `${path} is not what package-lock.json says`;
  }
  return undefined;
}

function sameVersion(found, wanted) {
  return found.version === wanted.version && (found.integrity ?? wanted.integrity) === wanted.integrity;
}

/**
 * Returns true if this platform needs an optional package. If the C library also matters, npm's choice is assumed to be
 * correct.
 */
function neededHere({ optional, os, cpu, libc }) {
  if (!optional) return true;
  return Boolean(os?.includes(process.platform) && cpu?.includes(process.arch) && !libc);
}

/** Returns the home in which an `npm start` runs, if any. It runs from node_modules, which `npm ci` deletes first. */
function homeInUse() {
  const dotenv = join(root, '.env');
  const { SENDWRIGHT_HOME } = {
    ...(existsSync(dotenv) && util.parseEnv(readFileSync(dotenv, 'utf8'))),
    ...process.env,
  };
  const home = resolve(root, SENDWRIGHT_HOME || '.sendwright');
  try {
    return isHeld(join(home, 'lock')) ? home : undefined;
  } catch {
    return undefined;
  }
}

/** As in dev/environment/lock.ts, which needs the dependencies. Throws if the lock does not exist or is invalid. */
function isHeld(lock) {
  const { pid, host, startTime } = JSON.parse(readFileSync(lock, 'utf8'));
  const isFresh = Date.now() - statSync(lock).mtimeMs < STALE_AFTER_MS;
  if (host !== hostname()) return isFresh;
  return exists(pid) && (isFresh || process.platform !== 'linux' || startTime === startTimeOf(pid));
}

function exists(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Returns field 22 of proc_pid_stat(5), which distinguishes a process from a later one with its pid. */
function startTimeOf(pid) {
  return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').pop().split(' ')[22 - 3];
}

/** Runs `npm ci` with its output on the terminal. @returns its exit code */
function install() {
  const npm = process.env.npm_execpath;
  const [command, ...args] = npm?.endsWith('npm-cli.js') ? [process.execPath, npm] : ['npm'];
  const started = Date.now();
  const child = spawn(command, [...args, 'ci', '--include=dev', '--no-audit', '--no-fund'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  // On a terminal npm shows its own progress.
  const ticking = process.stdout.isTTY
    ? undefined
    : setInterval(() => {
        console.log(`  … installing dependencies: ${Math.round((Date.now() - started) / 1_000)} s`);
      }, PROGRESS_INTERVAL_MS);
  return new Promise((resolve) => {
    child.on('error', (error) => {
      clearInterval(ticking);
      console.error(`npm could not be run: ${error.message}`);
      resolve(1);
    });
    child.on('exit', (code) => {
      clearInterval(ticking);
      if (code === 0) console.log(`Dependencies installed in ${((Date.now() - started) / 1_000).toFixed(1)} s`);
      resolve(code ?? 1);
    });
  });
}

const problem = nodeProblem();
if (problem) {
  console.error(problem);
  process.exit(1);
}
const reason = reasonToInstall();
if (reason) {
  const home = homeInUse();
  if (home) {
    console.error(
      `The dependencies must be installed again, since ${reason}. The \`npm start\` in ${home} runs from them: ` +
        'stop it first (Ctrl-C).',
    );
    process.exit(1);
  }
  console.log(`Installing dependencies, since ${reason} (npm ci)`);
  const code = await install();
  if (code !== 0) {
    console.error('npm ci failed, see above; without the dependencies nothing can start');
    process.exit(code);
  }
}
