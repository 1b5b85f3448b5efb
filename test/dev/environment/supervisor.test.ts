import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type BackOff, PartFailed } from '../../../dev/environment/part.ts';
import { commandLine, isAlive } from '../../../dev/environment/processes.ts';
import { makeSupervisor, onFreePorts, type Processes } from '../../../dev/environment/supervisor.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { scripted } from './scripts.ts';

const QUICK: BackOff = { firstMs: 20, maxMs: 80, resetAfterMs: 60_000 };

/** A supervisor, with the lines that it prints and the process ids that it reports. */
async function setUp(t: TestContext, backOff = QUICK) {
  const lines: string[] = [];
  const updates: Processes[] = [];
  const supervisor = makeSupervisor(
    { print: (line) => lines.push(line) },
    (processes) => updates.push(processes),
    backOff,
  );
  t.after(() => supervisor.stop());
  const folder = await temporaryFolder(t);
  const pids = () => [...new Set(updates.flatMap(({ api }) => api?.pid ?? []))];
  return { folder, supervisor, lines, updates, pids };
}

test('restarts a part that dies and reports its new process id', async (t) => {
  const { folder, supervisor, lines, pids } = await setUp(t);
  await supervisor.start('api', scripted(folder, 'api', `print('so far so good'); ready(); live()`));
  const [first = 0] = pids();
  process.kill(first, 'SIGKILL');
  const second = await eventually('a second process', () => pids()[1]);
  await eventually('it serves again', () => lines.some((line) => line.includes('api serves again')));
  assert.ok(!isAlive(first) && isAlive(second));
  assert.match(lines[0] ?? '', /^! api was ended by SIGKILL; it is started again in 0.0 s\n {4}so far so good$/);
});

test('doubles the pause between restarts up to the longest', async (t) => {
  const { folder, supervisor, lines } = await setUp(t, { firstMs: 100, maxMs: 300, resetAfterMs: 60_000 });
  await supervisor.start('api', scripted(folder, 'api', `ready(); setTimeout(() => process.exit(3), 20)`));
  await eventually('five deaths', () => lines.filter((line) => line.includes('ended with 3')).length >= 5);
  const pauses = lines.flatMap((line) => /again in (\S+) s/.exec(line)?.[1] ?? []);
  assert.deepEqual(pauses.slice(0, 5), ['0.1', '0.2', '0.3', '0.3', '0.3']);
});

test('does not restart a part that ends before it serves, and throws its last output', async (t) => {
  const { folder, supervisor, pids } = await setUp(t);
  const script = `for (let i = 0; i < 40; i++) print('line ' + i); process.exit(2)`;
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

test('restarts a part on another port if its port is in use', async (t) => {
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
      return supervisor.start('worker', scripted(folder, 'worker', `print('address already in use'); process.exit(1)`));
    }),
    PartFailed,
  );
  assert.equal(port, 3 + 5);
});

test('stops parts in order, one after the other', async (t) => {
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

test('kills a part that ignores SIGTERM, with its child processes', async (t) => {
  const { folder, supervisor, pids } = await setUp(t);
  const script = `
    process.on('SIGTERM', () => {});
    const helper = spawn('sleep', ['100']);
    ready({ helper: helper.pid }); live()`;
  const { helper } = await supervisor.start('api', scripted<{ helper: number }>(folder, 'api', script, 200));
  await supervisor.stop();
  assert.ok(pids().every((pid) => !isAlive(pid)));
  await eventually('its helper has ended', async () => (await commandLine(helper)) === undefined);
});

test('stops a part that is starting, and starts no other', async (t) => {
  const { folder, supervisor, pids } = await setUp(t);
  const starting = supervisor.start('api', scripted(folder, 'api', `live()`));
  const rejected = assert.rejects(starting);
  const pid = await eventually('its process', () => pids()[0]);
  await supervisor.stop();
  await rejected;
  assert.ok(!isAlive(pid));
  await assert.rejects(supervisor.start('worker', scripted(folder, 'worker', `ready()`)), /stopping/);
});

test('does not restart a part that is stopped during the pause', async (t) => {
  const { folder, supervisor, lines, pids } = await setUp(t, { firstMs: 20_000, maxMs: 20_000, resetAfterMs: 60_000 });
  await supervisor.start('api', scripted(folder, 'api', `ready(); setTimeout(() => process.exit(1), 20)`));
  await eventually('its death', () => lines.length > 0);
  await supervisor.stop();
  assert.equal(pids().length, 1);
});
