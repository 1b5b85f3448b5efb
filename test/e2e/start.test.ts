import assert from 'node:assert/strict';
import { access, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { untilAborted } from '../../src/lib/until-aborted.ts';
import { commandLine } from '../../dev/environment/processes.ts';
import { type DevFile, PARTS } from '../../src/main/dev-file.ts';
import { printed } from '../main/command-line.ts';
import { tcpServer } from '../providers/servers.ts';
import { eventually } from '../support/eventually.ts';
import { clientOf, emptyHome, type Launched, launchSendwright, readInbox, startSendwright } from '../support/start.ts';

async function assertGone(pids: readonly number[]): Promise<void> {
  for (const pid of pids) assert.equal(await commandLine(pid), undefined);
}

/** Waits until all parts are other processes than `before` and serve again. */
async function afterRestart(started: Launched, before: DevFile['processes']): Promise<DevFile> {
  await eventually(
    'every part serves again',
    () => PARTS.every((name) => started.output().includes(`! ${name} serves`)),
    60_000,
  );
  const dev = await started.dev();
  for (const name of PARTS) assert.notEqual(dev.processes[name], before[name]);
  return dev;
}

/** The files with secrets of a running service. */
const RUN_FILES = ['dev.json', 'settings.json'];

test('a first start delivers an email; killed parts come back; a second start finds the data', async (t) => {
  const home = await emptyHome();
  const first = await startSendwright(t, home);
  const dev = await first.dev();
  assert.match(first.output(), /\nEmail em_\w+ to you@example\.com: delivered\n(?: +\S+ +\+\d+ ms {2}email\.\w+\n){3}/);
  for (const name of RUN_FILES) assert.equal((await stat(join(home, name))).mode & 0o777, 0o600, name);
  for (const address of [`${dev.base_url}/readyz`, dev.inbox_url ?? '', dev.temporal_ui_url ?? '']) {
    assert.equal((await fetch(address)).status, 200, address);
  }
  const signed = await fetch(`${dev.dashboard_url}/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams({ email: dev.dashboard_email, password: dev.dashboard_password }),
  });
  assert.deepEqual([signed.status, signed.headers.get('location')], [303, '/dashboard']);
  assert.ok(first.output().includes(`${dev.dashboard_email} with the password ${dev.dashboard_password}\n`));
  const [id = ''] = /em_\w+/.exec(first.output()) ?? [];
  assert.deepEqual(
    (await readInbox(dev)).map(({ to }) => to),
    [['you@example.com']],
  );

  const { domains } = clientOf(dev);
  const [domain] = (await domains.list().page()).domains;
  assert.ok(domain);
  const shown = ['domain', 'show', '--organization', dev.organization_id, '--name', dev.domain];
  const { records } = await printed(shown, { SENDWRIGHT_HOME: home });
  assert.deepEqual(records, (await domains.get(domain.id)).records);

  for (const name of PARTS) process.kill(dev.processes[name] ?? 0, 'SIGKILL');
  const again = await afterRestart(first, dev.processes);
  const sendwright = clientOf(again);
  const next = await sendwright.emails.send({ from: dev.from, to: 'next@example.com', subject: 'Hello', text: 'Hi.' });
  await eventually('it is delivered', async () => (await sendwright.emails.get(next.id)).status === 'delivered');

  // Both npm and the terminal send it.
  process.kill(first.pid, 'SIGINT');
  process.kill(first.pid, 'SIGINT');
  assert.equal(await first.end('SIGTERM'), 0);
  await assertGone(Object.values(again.processes));
  for (const name of RUN_FILES) await assert.rejects(access(join(home, name)), name);

  const second = await startSendwright(t, home);
  const later = await second.dev();
  assert.equal(later.organization_id, dev.organization_id);
  assert.equal(later.api_key, dev.api_key);
  assert.equal((await clientOf(later).emails.get(id)).id, id);
});

test('a second start is refused; after a SIGKILL the next start ends the processes that are left', async (t) => {
  const home = await emptyHome();
  const first = await startSendwright(t, home);
  const { processes, base_url } = await first.dev();
  await assert.rejects(startSendwright(t, home), (error: Error) => {
    assert.match(error.message, /it ended with 1 and printed:\nSendwright already runs in /);
    return error.message.includes(`serves at ${base_url}`);
  });
  assert.ok(await commandLine(processes.api ?? 0));

  await first.end('SIGKILL');
  await eventually('our own processes have ended', async () => {
    const lines = [processes.api, processes.worker, processes.simulator].map((pid) => commandLine(pid ?? 0));
    return (await Promise.all(lines)).every((line) => line === undefined);
  });
  const second = await startSendwright(t, home);
  assert.match(second.output(), /Ended what an earlier start left behind: temporal, postgres\n/);
  await assertGone(Object.values(processes));
});

test('npm start leaves nothing when it is interrupted while it starts', async (t) => {
  const home = await emptyHome();
  const record = join(home, 'processes.json');
  const starting = launchSendwright(t, home);
  const text = await eventually('its first process', () => readFile(record, 'utf8').catch(() => undefined));
  assert.equal(await starting.end('SIGTERM'), 0);
  const processes = JSON.parse(text) as Record<string, { pid: number }>;
  await assertGone(Object.values(processes).map(({ pid }) => pid));
  await assert.rejects(access(record));
});

test('npm start ends promptly when it is interrupted while DATABASE_URL does not answer', async (t) => {
  const port = await tcpServer(t, () => undefined);
  const starting = launchSendwright(t, await emptyHome(), { DATABASE_URL: `postgres://u@127.0.0.1:${port}/d` });
  await eventually('it waits for the database alone', () => starting.output().includes('✓ Temporal server'), 60_000);
  // Without the interruption, the connection would wait for ever.
  assert.equal(await untilAborted(starting.end(), AbortSignal.timeout(60_000)), 0);
});
