import assert from 'node:assert/strict';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { makePool } from '../../src/store/postgres/pool.ts';
import { readProvider } from '../faults/evidence.ts';
import { makeTenant } from '../faults/tenant.ts';
import { atEnd } from '../support/at-end.ts';
import { baseBackup, restoreBackup } from '../support/base-backup.ts';
import { setBehaviour } from '../../dev/simulator/set-behaviour.ts';
import { built } from '../support/built.ts';
import { compose } from '../support/composed.ts';
import { eventually } from '../support/eventually.ts';
import { makeHomeFolder, startOwnServers } from '../support/own-servers.ts';

/** Milliseconds until the provider answers, so that calls are in flight during the backup. */
const SLOW = 25_000;
/** Milliseconds until the scheduled emails are due: after the backup, and after the restore. */
const DUE = { soon: 12_000, late: 180_000 };
const SENDING = [
  'migrate',
  'simulator',
  'api',
  'worker-messages',
  'worker-email',
  'worker-email-groups',
  'worker-chat',
];

/**
 * docs/maintenance.md, "Backup" and "Restore": Postgres is copied while messages are in flight, the service continues, then all is
 * lost and the copy is restored.
 * @param temporal `empty`: without workflows, as in the guide; `ahead`: with workflows that are newer than the copy
 */
export async function runRestoreScenario(t: TestContext, temporal: 'empty' | 'ahead'): Promise<void> {
  await built();
  const folder = await makeHomeFolder();
  const lost = await startOwnServers(folder);
  const after = atEnd(t);
  after(() => lost.stop());
  const settings = {
    LOG_LEVEL: 'info',
    SEND_INITIAL_INTERVAL: '500ms',
    SEND_MAX_INTERVAL: '5s',
    SEND_MAX_ATTEMPTS: '60',
  };
  // The simulator posts no reports, so lost outcomes are found by asking the provider only.
  const simulator = { SIMULATOR_CALLBACK_URL: '', SIMULATOR_META_CALLBACK_URL: '' };
  const first = await compose({ folder, ...lost, settings, simulator });
  after(() => first.kill());
  await first.start(...SENDING);
  const pool = makePool(lost.databaseUrl, 'test', 3, () => undefined);

  const [url = ''] = first.urls;
  const tenant = await makeTenant({ pool, url }, 1, 'https://example.com/hook');
  const post = async (path: string, body: object): Promise<void> => {
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: tenant.headers,
      body: JSON.stringify(body),
    });
    assert.equal(answer.status, 202, await answer.text());
  };
  const email = (to: string, more: object = {}) => {
    return { from: tenant.from, to, subject: 'Restore', text: 'Once, please', ...more };
  };
  const inMs = (ms: number) => ({ scheduled_at: new Date(Date.now() + ms).toISOString() });
  const many = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}-${i}@example.net`);

  // In flight during the backup, which contains the attempts without their outcomes.
  const inFlight = many('in-flight', 10);
  await setBehaviour(first.simulatorUrl, { latency_ms: SLOW });
  for (const to of inFlight) await post('/v1/emails', email(to));
  const openAttempts = async () => {
    const { rows } = await pool.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM attempts WHERE outcome IS NULL',
    );
    return rows[0]?.count;
  };
  await eventually('the provider is called', async () => (await openAttempts()) === inFlight.length, SLOW);

  // Not begun at the backup, and sent after it.
  const workers = ['worker-email', 'worker-email-groups', 'worker-chat'].flatMap((name) => first.containers(name));
  const ended = Promise.all(workers.map((worker) => worker.stop()));
  // Until their last poll for tasks has ended.
  await sleep(1_000);
  const pending = [...many('single', 20), ...many('batch', 200)];
  for (const to of pending.slice(0, 20)) await post('/v1/emails', email(to));
  await post('/v1/emails/batch', { emails: pending.slice(20).map((to) => email(to)) });
  const copies = many('copy', 3);
  await post('/v1/emails', email('', { to: copies, marketing: true }));
  const chats = Array.from({ length: 3 }, (_, i) => `+49151000000${i}9`);
  for (const to of chats) await post('/v1/chatapp', { from: tenant.numbers.twilio, to, text: 'Once, please' });
  await post('/v1/emails', email('soon@example.net', inMs(DUE.soon)));
  await post('/v1/emails', email('late@example.net', inMs(DUE.late)));
  const backup = join(folder, 'backup');
  await baseBackup(lost.adminUrl, join(lost.home.postgres, 'data'), backup);
  assert.equal(await openAttempts(), inFlight.length, 'still in flight after the backup');
  t.diagnostic(
    `backup of ${inFlight.length} calls in flight and ${pending.length + chats.length + 3} pending messages`,
  );

  // The service continues.
  assert.deepEqual(
    await ended,
    workers.map(() => 0),
  );
  await setBehaviour(first.simulatorUrl, {});
  for (const worker of workers) await worker.start();
  const since = many('since', 5);
  for (const to of since) await post('/v1/emails', email(to));
  const before = [...inFlight, ...chats, ...pending, ...copies, 'soon@example.net'];
  const provider = readProvider(first.inbox);
  const arrived = (to: string) => provider.read().get(to)?.length ?? 0;
  await eventually('all is sent', () => [...before, ...since].every((to) => arrived(to) > 0), 150_000);
  assert.equal(arrived('late@example.net'), 0, 'not due yet');

  // Only the backup, the secrets, the files and the provider's data remain.
  await first.kill();
  await pool.end();
  const restored = await makeHomeFolder();
  for (const kept of ['secrets', 'volumes']) await cp(join(folder, kept), join(restored, kept), { recursive: true });
  await restoreBackup(backup, join(restored, 'postgres', 'data'));
  if (temporal === 'empty') await lost.stop();
  const restoredServers = await startOwnServers(restored);
  after(() => restoredServers.stop());
  const { temporalAddress } = temporal === 'empty' ? restoredServers : lost;
  const second = await compose({ folder: restored, ...restoredServers, temporalAddress, settings, simulator });
  after(() => second.kill());
  const database = makePool(restoredServers.databaseUrl, 'test', 3, () => undefined);
  after(() => database.end());
  await second.start('migrate', 'simulator');
  const { rows } = await database.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM emails WHERE status IN ('queued', 'scheduled')`,
  );
  const open = inFlight.length + pending.length + 3;
  assert.equal(rows[0]?.count, open, 'emails that are open in the backup');
  const report: object = await second.admin('after-restore');
  assert.deepEqual(report, { emails: open, messages: chats.length, asked: 'postmark', erasures: 0 });
  await second.start(...SENDING.slice(2));
  await assert.rejects(() => second.admin('after-restore'), /stop the API and the workers first/);

  const again = readProvider(second.inbox);
  const began = Date.now();
  await eventually(
    'every message has ended',
    async () => {
      const { rowCount } = await database.query(
        `SELECT FROM emails WHERE status IN ('queued', 'scheduled')
         UNION ALL SELECT FROM chat_messages WHERE status = 'queued' LIMIT 1`,
      );
      return rowCount === 0;
    },
    240_000,
  );
  t.diagnostic(`all ended ${((Date.now() - began) / 1_000).toFixed(1)} s after the start`);
  const ledger = again.read();
  const wanted = [...before, ...since, 'late@example.net'];
  const wrong = wanted.flatMap((to) => {
    const times = ledger.get(to)?.length ?? 0;
    return times === 1 ? [] : `${to}: ${times} times`;
  });
  assert.deepEqual(wrong, [], 'everything is at the provider exactly once');
  assert.equal(ledger.size, wanted.length, 'the provider has no other message');
  const { rows: statuses } = await database.query(
    `SELECT DISTINCT status FROM emails WHERE status NOT IN ('sent', 'delivered')`,
  );
  assert.deepEqual(statuses, [], 'the API reports them as sent');
}
