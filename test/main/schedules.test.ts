import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from '@temporalio/worker';
import { pino } from 'pino';
import type { UpkeepActivities } from '../../activities/index.ts';
import { ensureSchedules, keepSchedules, upkeepTasks } from '../../src/main/wiring/schedules.ts';
import type { UpkeepTaskName } from '../../workflows/index.ts';
import { atEnd } from '../support/at-end.ts';
import { testDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { testNamespace } from '../support/temporal.ts';
import { silenceTemporal, workflowBundle } from '../support/workflows.ts';

const SCHEDULES = [
  'upkeep-bodies',
  'upkeep-chats',
  'upkeep-counts',
  'upkeep-daily',
  'upkeep-deliveries',
  'upkeep-hourly',
  'upkeep-keys',
  'upkeep-reports',
  'upkeep-rescue',
  'upkeep-scheduled',
  'upkeep-statistics',
  'upkeep-stuck',
] as const;

test('schedules and search attributes that are missing are created again while workers run', async (t) => {
  silenceTemporal();
  const { client, close } = await testNamespace();
  t.after(close);
  const database = await testDatabase(2);
  t.after(() => database.drop());
  let attributes = 0;
  const stop = keepSchedules(
    {
      client,
      pool: database.pool,
      // Temporal is unreachable in the first round.
      ensureSearchAttributes: () => (attributes++ === 0 ? Promise.reject(new Error('away')) : Promise.resolve()),
      log: pino({ level: 'silent' }),
    },
    200,
  );
  t.after(stop);
  const names = async () => {
    const found: string[] = [];
    for await (const { scheduleId } of client.schedule.list()) found.push(scheduleId);
    return found.sort();
  };
  const areAll = async () => (await names()).join() === SCHEDULES.join();
  await eventually('all schedules are there', areAll, 30_000);
  for (const id of SCHEDULES) await client.schedule.getHandle(id).delete();
  await eventually('all schedules are there again', areAll, 60_000);
  assert.ok(attributes > 2);
  const { rows } = await database.pool.query<{ name: string }>('SELECT name FROM upkeep_tasks ORDER BY name');
  assert.deepEqual(
    rows.map(({ name }) => name),
    upkeepTasks()
      .map(({ name }) => name)
      .sort(),
  );
});

test('the tasks of a schedule that a worker of another version has changed are restored', async (t) => {
  silenceTemporal();
  const { client, close } = await testNamespace();
  t.after(close);
  await ensureSchedules(client);
  const counts = client.schedule.getHandle('upkeep-counts');
  const tasks = async () => (await counts.describe()).action.args?.[0] as string[];
  const ours = await tasks();
  const theirs = ['foldBatchMoves', 'announceBatches', 'wakeEndpoints'];
  await counts.update((schedule) => ({ ...schedule, action: { ...schedule.action, args: [theirs] } }));
  await eventually('another version has changed it', async () => (await tasks()).join() === theirs.join());
  await ensureSchedules(client, { update: false });
  await eventually('its tasks are restored', async () => (await tasks()).join() === ours.join());
});

test('schedules run every maintenance task, and a paused schedule stays paused when workers start', async (t) => {
  silenceTemporal();
  const { connection, namespace, client, close } = await testNamespace();
  const after = atEnd(t);
  after(close);
  await Promise.all([ensureSchedules(client), ensureSchedules(client)]);
  const daily = client.schedule.getHandle('upkeep-daily');
  // Temporal answers before it applies an update, and an earlier update may still undo this one.
  await eventually('it is paused', async () => {
    await daily.pause('by hand');
    await sleep(200);
    return (await daily.describe()).state.paused;
  });
  await ensureSchedules(client);

  const tasks = new Map<string, UpkeepTaskName[]>();
  for (const id of SCHEDULES) {
    const { action, state } = await client.schedule.getHandle(id).describe();
    assert.equal(state.paused, id === 'upkeep-daily', `${id}: only it was paused`);
    assert.ok(action.workflowType === 'upkeep' && action.taskQueue === 'messages');
    tasks.set(id, action.args?.[0] as UpkeepTaskName[]);
  }

  const asked: string[] = [];
  const step = (task: UpkeepTaskName, steps: number) => {
    let remaining = steps;
    return async (from?: string | null) => {
      asked.push(`${task} ${from === null || from === undefined ? 'first' : from}`);
      return { done: 2, next: --remaining > 0 ? `page ${steps - remaining}` : null };
    };
  };
  const activities: UpkeepActivities = {
    expireAttachments: step('expireAttachments', 3),
    sweepFiles: step('sweepFiles', 2),
    expireBodies: step('expireBodies', 1),
    addPartitions: step('addPartitions', 1),
    expireEmails: step('expireEmails', 2),
    rotateRequestLog: step('rotateRequestLog', 1),
    reportUnknownFiles: step('reportUnknownFiles', 2),
    deleteOldErasures: step('deleteOldErasures', 1),
    deleteExpiredKeys: step('deleteExpiredKeys', 1),
    deleteOldCallbacks: step('deleteOldCallbacks', 1),
    deleteExpiredSignIns: step('deleteExpiredSignIns', 1),
    deleteOldStatistics: step('deleteOldStatistics', 1),
    backfillStatistics: step('backfillStatistics', 2),
    putBackOverdue: step('putBackOverdue', 1),
    putBackOverdueChats: step('putBackOverdueChats', 1),
    putBackScheduled: step('putBackScheduled', 1),
    replaceFailing: step('replaceFailing', 1),
    reconcileChats: step('reconcileChats', 1),
    clearProviderLists: step('clearProviderLists', 1),
    clearProviderDomains: step('clearProviderDomains', 1),
    reconcileSent: step('reconcileSent', 1),
    foldBatchMoves: step('foldBatchMoves', 1),
    announceBatches: step('announceBatches', 1),
    endEarlierWorkflows: step('endEarlierWorkflows', 1),
    deleteOldDeliveries: step('deleteOldDeliveries', 1),
  };
  const workers = await Promise.all([
    Worker.create({ connection, namespace, taskQueue: 'messages', workflowBundle: await workflowBundle() }),
    Worker.create({ connection, namespace, taskQueue: 'upkeep', activities }),
  ]);
  const running = Promise.all(workers.map((worker) => worker.run()));
  after(async () => {
    for (const worker of workers) worker.shutdown();
    await running;
  });

  const triggered = ['upkeep-bodies', 'upkeep-daily', 'upkeep-deliveries', 'upkeep-hourly', 'upkeep-keys'];
  for (const id of triggered) await client.schedule.getHandle(id).trigger();
  const expected = [
    'addPartitions first',
    'deleteExpiredKeys first',
    'deleteExpiredSignIns first',
    'deleteOldCallbacks first',
    'deleteOldDeliveries first',
    'deleteOldErasures first',
    'deleteOldStatistics first',
    'expireAttachments first',
    'expireAttachments page 1',
    'expireAttachments page 2',
    'expireBodies first',
    'expireEmails first',
    'expireEmails page 1',
    'reportUnknownFiles first',
    'reportUnknownFiles page 1',
    'rotateRequestLog first',
    'sweepFiles first',
    'sweepFiles page 1',
  ];
  await eventually('all steps were done', () => expected.every((line) => asked.includes(line)), 60_000);
  // Other schedules may run at their time meanwhile.
  const ours = new Set(triggered.flatMap((id) => tasks.get(id) ?? []));
  const distinct = [...new Set(asked)].filter((line) => ours.has(line.split(' ')[0] as UpkeepTaskName));
  assert.deepEqual(distinct.sort(), expected);
  assert.deepEqual([...tasks.values()].flat().sort(), Object.keys(activities).sort(), 'every task has a schedule');
});
