import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newId } from '../../src/lib/ids.ts';
import { insertBatch } from '../../src/store/emails/batches.ts';
import { diskStore } from '../../src/store/files/disk.ts';
import type { UpkeepStep } from '../../src/upkeep/task.ts';
import { organizationFixture } from '../support/organization.ts';
import { runAllSteps, upkeepActivities } from './activities.ts';

const { pool, orgId } = await organizationFixture(5);
const activities = upkeepActivities(pool, diskStore('unused'));

test('callbacks of providers are deleted after 30 days', async () => {
  await pool.query(
    `INSERT INTO provider_callbacks (provider, body, received_at)
     SELECT 'postmark', '{}', now() - make_interval(hours => CASE WHEN n <= 6000 THEN 721 ELSE 719 END)
     FROM generate_series(1, 6100) AS n`,
  );
  assert.deepEqual(await activities.deleteOldCallbacks(), { done: 5_000, next: '' });
  assert.deepEqual(await activities.deleteOldCallbacks(), { done: 1_000, next: null });
  const { rows } = await pool.query('SELECT count(*)::int AS kept FROM provider_callbacks');
  assert.deepEqual(rows, [{ kept: 100 }]);
});

test('messages of chat-app users are deleted after 30 days', async () => {
  await pool.query(
    `INSERT INTO chat_inbound (id, org_id, number_id, provider_message_id, received_at)
     SELECT 'in_' || n, 'org', 'num', n, now() - make_interval(hours => CASE WHEN n <= 2 THEN 721 ELSE 719 END)
     FROM generate_series(1, 5) AS n`,
  );
  assert.deepEqual(await activities.deleteOldCallbacks(), { done: 2, next: null });
  const { rows } = await pool.query('SELECT count(*)::int AS kept FROM chat_inbound');
  assert.deepEqual(rows, [{ kept: 3 }]);
});

test('expired sign-in attempts, sessions, invitations, password resets and account links are deleted, and others stay', async () => {
  await pool.query(`INSERT INTO users (id, email, name, password) VALUES ('usr_1', 'a@example.com', '', 'x')`);
  for (const [name, ends] of [
    ['past', `now() - interval '1 second'`],
    ['open', `now() + interval '1 hour'`],
  ] as const) {
    const sha256 = `sha256('${name}')`;
    await pool.query(
      `INSERT INTO sign_in_attempts (kind, subject, attempts, expires_at) VALUES ('network', ${sha256}, 1, ${ends})`,
    );
    for (const table of ['sessions', 'password_resets']) {
      await pool.query(`INSERT INTO ${table} (sha256, user_id, expires_at) VALUES (${sha256}, 'usr_1', ${ends})`);
    }
    await pool.query(`INSERT INTO account_links (email_id, sealed, expires_at) VALUES ($1, 'x', ${ends})`, [
      `em_${name}`,
    ]);
    await pool.query(
      `INSERT INTO invitations (id, org_id, sha256, email, role, expires_at)
       VALUES ('inv_${name}', $1, ${sha256}, '${name}@example.com', 'viewer', ${ends})`,
      [orgId],
    );
  }
  await pool.query(
    `INSERT INTO sign_in_failures (subject, tries, since) VALUES ('email:old', 1, now() - interval '16 minutes')`,
  );
  assert.deepEqual(await activities.deleteExpiredSignIns(), { done: 6, next: null });
  const { rows } = await pool.query(
    `SELECT (SELECT count(*)::int FROM sign_in_attempts) AS attempts, (SELECT count(*)::int FROM password_resets) AS resets,
       (SELECT string_agg(email_id, ' ') FROM account_links) AS links, (SELECT count(*)::int FROM sessions) AS sessions,
       (SELECT count(*)::int FROM sign_in_failures) AS failures, (SELECT string_agg(id, ' ') FROM invitations) AS invitations`,
  );
  assert.deepEqual(rows, [
    { attempts: 1, resets: 1, links: 'em_open', sessions: 1, failures: 0, invitations: 'inv_open' },
  ]);
});

test('expired idempotency keys are deleted in steps', async () => {
  await pool.query(
    `INSERT INTO idempotency_keys (org_id, key, fingerprint, answer, created_at)
     SELECT $1, n::text, sha256('x'), '{}', now() - interval '25 hours' FROM generate_series(1, 7500) AS n`,
    [orgId],
  );
  assert.deepEqual(await activities.deleteExpiredKeys(), { done: 5_000, next: '' });
  assert.deepEqual(await activities.deleteExpiredKeys(), { done: 2_500, next: null });
});

test('activities include the tasks of version 0.1.0, which runs that it began still request', async () => {
  const known = new Map<string, unknown>(Object.entries(activities));
  for (const name of [
    ...['foldBatchMoves', 'announceBatches', 'putBackOverdue', 'putBackOverdueChats', 'clearProviderLists'],
    ...['reconcileSent', 'clearProviderDomains', 'reconcileChats', 'expireAttachments', 'deleteExpiredKeys'],
    ...['deleteOldCallbacks', 'deleteOldDeliveries', 'sweepFiles'],
  ]) {
    assert.ok(known.has(name), name);
  }
  for (const name of ['wakeEndpoints', 'wakeDomains']) {
    const step = (known.get(name) as () => Promise<UpkeepStep>)();
    assert.deepEqual(await step, { done: 0, next: null }, name);
  }
});

test('the moves of all batches are merged, although the oldest are of one batch', async () => {
  const [first, second] = [newId('bt'), newId('bt')];
  for (const [id, total, ageSeconds] of [
    [first, 200, 200],
    [second, 2, 100],
  ] as const) {
    await insertBatch(pool, orgId, { id, total, scheduled: 0 }, undefined);
    await pool.query(
      `INSERT INTO batch_moves (batch_id, from_status, to_status, members, at)
       SELECT $1, 'queued', 'sent', 1, now() - make_interval(secs => $3) FROM generate_series(1, $2)`,
      [id, total, ageSeconds],
    );
  }
  assert.equal(await runAllSteps(() => activities.foldBatchMoves()), 2);
  const { rows } = await pool.query('SELECT batch_id, members FROM batch_moves WHERE to_status = $1 ORDER BY members', [
    'sent',
  ]);
  assert.deepEqual(rows, [
    { batch_id: second, members: 2 },
    { batch_id: first, members: 200 },
  ]);
});
