import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { temporaryFolder } from '../support/folder.ts';
import { documented } from '../compose/documented.ts';
import { ROOT } from '../support/root.ts';
import { writePrograms } from './programs.ts';

/** A `docker` with replicas of the API, whose ids and health are lines of the file `replicas`; new ones have `$HEALTH`. */
const DOCKER = `
echo "$*" >>log
case "$*" in
*"$FAILS"*) exit 1 ;;
'compose ps --format '*) cat replicas ;;
'compose ps --quiet api') cut -d ' ' -f 1 replicas ;;
"compose --profile monitoring ps --quiet $MONITORING") echo m ;;
'rm '*)
  sed "/^$2 /d" replicas >rest
  mv rest replicas
  ;;
*' --scale api='*)
  count=$(echo "$*" | sed 's/.*--scale api=\\([0-9]*\\).*/\\1/')
  while [ "$(wc -l <replicas)" -lt "$count" ]; do echo "new$(wc -l <replicas) $HEALTH" >>replicas; done
  [ "$HEALTH" = healthy ]
  ;;
esac`;

interface Scenario {
  /** Ids and health. */
  readonly replicas: readonly string[];
  /** The health of new replicas. */
  readonly health?: string;
  /** Words of a command that fails. */
  readonly fails?: string;
  /** The service of the profile monitoring that runs. */
  readonly monitoring?: string;
}

/** Runs shell commands. @returns whether they succeeded, stderr, the arguments of `docker`, and the replicas at the end */
async function run(
  t: TestContext,
  commands: string,
  { replicas, health = 'healthy', fails = 'none', monitoring = 'none' }: Scenario,
) {
  const folder = await temporaryFolder(t);
  const write = (lines: readonly string[]) =>
    writeFile(join(folder, 'replicas'), lines.map((line) => `${line}\n`).join(''));
  const read = async (name: string) => (await readFile(join(folder, name), 'utf8')).split('\n').slice(0, -1);
  const PATH = await writePrograms(folder, { docker: DOCKER });
  await write(replicas);
  const { ok, errors } = await new Promise<{ ok: boolean; errors: string }>((resolve) => {
    const env = { PATH, HEALTH: health, FAILS: fails, MONITORING: monitoring };
    execFile('sh', ['-c', commands], { cwd: folder, env }, (error, _, errors) =>
      resolve({ ok: error === null, errors }),
    );
  });
  return { ok, errors, log: await read('log'), replicas: await read('replicas') };
}

describe('deploy/restart.sh', { concurrency: true }, () => {
  const restart = (t: TestContext, scenario: Scenario) => run(t, `sh ${ROOT}deploy/restart.sh`, scenario);

  it('stops the old replicas of the API after the new ones are healthy', async (t) => {
    const { ok, log, replicas } = await restart(t, { replicas: ['a healthy', 'b healthy'] });
    assert.deepEqual([ok, replicas], [true, ['new2 healthy', 'new3 healthy']]);
    const scaled = log.findIndex((line) => line.endsWith('--scale api=4 --wait api'));
    assert.ok(scaled >= 0 && scaled < log.indexOf('stop a'));
    assert.ok(log.at(-3)?.endsWith(' --no-recreate api'), 'as many as docker-compose.yml has');
  });

  for (const monitoring of ['prometheus', 'grafana']) {
    it(`restarts ${monitoring} if it runs`, async (t) => {
      const { ok, log } = await restart(t, { replicas: ['a healthy'], monitoring });
      const restarts = log.filter((line) => line.startsWith('compose --profile monitoring up '));
      const expected = `compose --profile monitoring up --detach --no-deps --force-recreate ${monitoring}`;
      assert.deepEqual([ok, restarts], [true, [expected]]);
    });
  }

  it('adds two replicas to those that an interrupted run has left', async (t) => {
    const { ok, log, replicas } = await restart(t, { replicas: ['a', 'b', 'c', 'd'].map((id) => `${id} healthy`) });
    assert.deepEqual([ok, replicas], [true, ['new4 healthy', 'new5 healthy']]);
    assert.ok(log.some((line) => line.includes('--scale api=6 ')));
  });

  it('starts an API of which no replica runs', async (t) => {
    const { ok, replicas } = await restart(t, { replicas: [] });
    assert.deepEqual([ok, replicas], [true, ['new0 healthy', 'new1 healthy']]);
  });

  it('stops no healthy replica if the new ones are not healthy, and removes these', async (t) => {
    const { ok, log, replicas } = await restart(t, { replicas: ['a healthy', 'b healthy'], health: 'unhealthy' });
    assert.deepEqual([ok, replicas], [false, ['a healthy', 'b healthy']]);
    assert.ok(log.indexOf('logs --tail 20 new2') < log.indexOf('rm new2'));
  });

  it('does not wait for unhealthy replicas of an earlier run', async (t) => {
    const { ok, log, replicas } = await restart(t, { replicas: ['a healthy', 'b unhealthy', 'c starting', 'd '] });
    assert.deepEqual([ok, replicas], [true, ['new1 healthy', 'new2 healthy']]);
    assert.ok(log.some((line) => line.includes('--scale api=3 ')));
  });

  it('removes no replica if none is healthy, and states how to replace all', async (t) => {
    const { ok, replicas, errors } = await restart(t, { replicas: ['a unhealthy', 'b starting'] });
    assert.deepEqual([ok, replicas], [false, ['a unhealthy', 'b starting']]);
    assert.match(errors, /No replica of the API is healthy.*docker compose up --detach --force-recreate api/s);
  });

  it('leaves the API alone if a worker does not become healthy', async (t) => {
    const { ok, log } = await restart(t, { replicas: ['a healthy'], fails: 'worker-email' });
    assert.equal(ok, false);
    assert.match(log.at(-1) ?? '', / worker-email-groups$/);
  });
});

describe('the documented upgrade', { concurrency: true }, () => {
  for (const fails of ['compose build', 'compose run --rm migrate']) {
    it(`replaces nothing if docker ${fails} fails`, async (t) => {
      const commands = documented('Upgrades', 'sendwright').replaceAll('sh deploy/', `sh ${ROOT}deploy/`);
      const { ok, log } = await run(t, commands, { replicas: ['a healthy'], fails });
      assert.deepEqual([ok, log.at(-1)], [false, fails]);
    });
  }
});
