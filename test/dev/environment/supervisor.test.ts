import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type BackOff, PartFailed } from '../../../dev/environment/part.ts';
import { commandLine } from '../../../dev/environment/processes.ts';
import { makeSupervisor, onFreePorts, type Processes } from '../../../dev/environment/supervisor.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { unstalledMs } from '../../support/unstalled-time.ts';
import { isAlive, scripted } from './scripts.ts';

const QUICK: BackOff = { first: 20, longest: 80, forgiveAfter: 60_000 };

/** A supervisor with all that it says and all process ids that it names. */
async function setUp(t: TestContext, backOff = QUICK) {
  const said: string[] = [];
  const told: Processes[] = [];
  const supervisor = makeSupervisor({ say: (line) => said.push(line) }, (processes) => told.push(processes), backOff);
  t.after(() => supervisor.stop());
  const folder = await temporaryFolder(t);
  const pids = () => [...new Set(told.flatMap(({ api }) => api?.pid ?? []))];
  return { folder, supervisor, said, told, pids };
}

test('a part says of itself what it likes when it serves', async (t) => {
  const { folder, supervisor, told } = await setUp(t);
  const facts = await supervisor.start('api', scripted(folder, 'api', `ready({ url: 'here' }); live()`));
  assert.deepEqual(facts, { ready: true, url: 'here' });
  assert.equal(told.length, 1);
  assert.ok(isAlive(told[0]?.api?.pid ?? 0));
});

test('a part that dies is started again, and its new process id is told', async (t) => {
  const { folder, supervisor, said, pids } = await setUp(t);
  await supervisor.start('api', scripted(folder, 'api', `say('so far so good'); ready(); live()`));
  const [first = 0] = pids();
  process.kill(first, 'SIGKILL');
  const second = await eventually('a second process', () => pids()[1]);
  await eventually('it serves again', () => said.some((line) => line.includes('api serves again')));
  assert.ok(!isAlive(first) && isAlive(second));
  assert.match(said[0] ?? '', /^! api was ended by SIGKILL; it is started again in 0.0 s\n {4}so far so good$/);
});

test('pauses double up to the longest while it keeps dying', async (t) => {
  const { folder, supervisor, said } = await setUp(t, { first: 100, longest: 300, forgiveAfter: 60_000 });
  await supervisor.start('api', scripted(folder, 'api', `ready(); setTimeout(() => process.exit(3), 20)`));
  await eventually('five deaths', () => said.filter((line) => line.includes('ended with 3')).length >= 5);
  const pauses = said.flatMap((line) => /again in (\S+) s/.exec(line)?.[1] ?? []);
  assert.deepEqual(pauses.slice(0, 5), ['0.1', '0.2', '0.3', '0.3', '0.3']);
});

test('having lived for a while it is forgiven', async (t) => {
  const { folder, supervisor, said } = await setUp(t, { first: 100, longest: 5_000, forgiveAfter: 1 });
  await supervisor.start('api', scripted(folder, 'api', `ready(); setTimeout(() => process.exit(3), 20)`));
  await eventually('four deaths', () => said.filter((line) => line.includes('ended with 3')).length >= 4);
  assert.ok(said.every((line) => !line.includes('started again') || line.includes('again in 0.1 s')));
});

test('one that ends before it serves is not started again, and the error holds what it printed last', async (t) => {
  const { folder, supervisor, pids } = await setUp(t);
  const script = `for (let i = 0; i < 40; i++) say('line ' + i); process.exit(2)`;
  await assert.rejects(
    supervisor.start('api', scripted(folder, 'api', script)),
    (error: unknown) =>
      error instanceof PartFailed &&
      error.message.startsWith('api ended with 2; it printed last:') &&
      error.message.endsWith('line 39') &&
      !error.message.includes('line 20') &&
      !error.portTaken,
  );
  assert.equal(pids().length, 1);
});

test('a program that is not there is an error too', async (t) => {
  const { folder, supervisor } = await setUp(t);
  const spec = { ...scripted(folder, 'api', ''), command: join(folder, 'nothing') };
  await assert.rejects(supervisor.start('api', spec), /api could not be run/);
});

test('what loses a race for its port is started once more, on another one', async (t) => {
  const { folder, supervisor } = await setUp(t);
  let port = 0;
  const serving = await onFreePorts(async () => {
    port++;
    const script = port < 3 ? `console.error('listen EADDRINUSE: ${port}'); process.exit(1)` : `ready(); live()`;
    await supervisor.start('api', scripted(folder, 'api', script));
    return port;
  });
  assert.equal(serving, 3);
  await assert.rejects(
    onFreePorts(async () => {
      port++;
      return supervisor.start('worker', scripted(folder, 'worker', `say('address already in use'); process.exit(1)`));
    }),
    PartFailed,
  );
  assert.equal(port, 3 + 5);
});

test('parts are stopped in their order, each when the one before has ended', async (t) => {
  const { folder, supervisor } = await setUp(t);
  const order = join(folder, 'order');
  const script = (name: string) => `
    process.on('SIGTERM', () => {
      appendFileSync('${order}', '${name} begins\\n');
      setTimeout(() => { appendFileSync('${order}', '${name} ends\\n'); process.exit() }, 30);
    });
    ready(); live()`;
  for (const name of ['postgres', 'simulator', 'api', 'temporal', 'worker'] as const) {
    await supervisor.start(name, scripted(folder, name, script(name)));
  }
  await supervisor.stop();
  const names = ['api', 'worker', 'simulator', 'temporal', 'postgres'];
  assert.deepEqual(
    (await readFile(order, 'utf8')).trim().split('\n'),
    names.flatMap((name) => [`${name} begins`, `${name} ends`]),
  );
});

test('one that does not listen is killed at its deadline, with all that it has started', async (t) => {
  const { folder, supervisor, pids } = await setUp(t);
  const script = `
    process.on('SIGTERM', () => {});
    const helper = spawn('sleep', ['100']);
    ready({ helper: helper.pid }); live()`;
  const { helper } = await supervisor.start('api', scripted<{ helper: number }>(folder, 'api', script, 200));
  const before = unstalledMs();
  await supervisor.stop();
  assert.ok(unstalledMs() - before < 1_500);
  assert.ok(pids().every((pid) => !isAlive(pid)));
  await eventually('its helper has ended', async () => (await commandLine(helper)) === undefined);
});

test('helpers that outlive a part by themselves are ended before it is started again', async (t) => {
  const { folder, supervisor, pids } = await setUp(t);
  const script = `const helper = spawn('sleep', ['100']); ready({ helper: helper.pid }); live()`;
  const { helper } = await supervisor.start('api', scripted<{ helper: number }>(folder, 'api', script));
  process.kill(pids()[0] ?? 0, 'SIGKILL');
  await eventually('its helper has ended', async () => (await commandLine(helper)) === undefined);
});

test('stopping twice, at once and again, stops once and waits for the end', async (t) => {
  const { folder, supervisor, pids } = await setUp(t);
  const count = join(folder, 'count');
  const script = `
    process.on('SIGTERM', () => { appendFileSync('${count}', '.'); setTimeout(() => process.exit(), 300) });
    ready(); live()`;
  await supervisor.start('api', scripted(folder, 'api', script));
  const stopping = supervisor.stop();
  await eventually('its first signal', () => readFile(count, 'utf8').catch(() => undefined));
  await Promise.all([stopping, supervisor.stop()]);
  assert.ok(!isAlive(pids()[0] ?? 0));
  await supervisor.stop();
  assert.equal(await readFile(count, 'utf8'), '.');
});

test('stopped while it starts, a part is gone and nothing is started any more', async (t) => {
  const { folder, supervisor, pids } = await setUp(t);
  const starting = supervisor.start('api', scripted(folder, 'api', `live()`));
  const rejected = assert.rejects(starting);
  const pid = await eventually('its process', () => pids()[0]);
  await supervisor.stop();
  await rejected;
  assert.ok(!isAlive(pid));
  await assert.rejects(supervisor.start('worker', scripted(folder, 'worker', `ready()`)), /stopping/);
});

test('stopped in the pause after a death, a part does not come back', async (t) => {
  const { folder, supervisor, said, pids } = await setUp(t, { first: 20_000, longest: 20_000, forgiveAfter: 60_000 });
  await supervisor.start('api', scripted(folder, 'api', `ready(); setTimeout(() => process.exit(1), 20)`));
  await eventually('its death', () => said.length > 0);
  const before = unstalledMs();
  await supervisor.stop();
  assert.ok(unstalledMs() - before < 10_000);
  assert.equal(pids().length, 1);
});

test('some parts can be stopped and started anew while the others go on', async (t) => {
  const { folder, supervisor, told } = await setUp(t);
  await supervisor.start('api', scripted(folder, 'api', `ready(); live()`));
  await supervisor.start('postgres', scripted(folder, 'postgres', `ready(); live()`));
  const before = told.at(-1);
  await supervisor.stop(['api']);
  assert.ok(!isAlive(before?.api?.pid ?? 0) && isAlive(before?.postgres?.pid ?? 0));
  await supervisor.start('api', scripted(folder, 'api', `ready(); live()`));
  assert.ok(isAlive(told.at(-1)?.api?.pid ?? 0));
});
