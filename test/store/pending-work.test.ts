import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { readDue, readOutbox, type PendingWork } from '../../src/store/emails/pending-work.ts';
import { useDatabase } from '../support/database.ts';
import { explainEach } from '../support/plans.ts';
import { acceptText, connect } from './chats.ts';
import { accept, acceptOne, force, inMs, newEmail, organization } from './mail.ts';

const { pool } = await useDatabase();
let orgId: string;
/** The verified domain of the test's organization. */
let domain: { from_domain: string };
let count = 0;
beforeEach(async () => {
  await pool.query('TRUNCATE outbox, emails, chat_messages, webhook_endpoints, webhook_deliveries');
  domain = { from_domain: `o${++count}.example` };
  orgId = await organization(pool, domain.from_domain);
});

/** Counts and whole seconds by fleet, without fleets that have no backlog. */
function backlog(rows: PendingWork[]): Record<string, [count: number, seconds: number]> {
  const some = rows.filter(({ count, oldest_seconds: oldest }) => count > 0 || oldest > 0);
  return Object.fromEntries(
    some.map(({ fleet, count, oldest_seconds: oldest }) => [fleet, [count, Math.floor(oldest + 0.01)]]),
  );
}

async function row(action: string, values: { age?: number; tries?: number; retryIn?: number } = {}): Promise<void> {
  const { age = 0, tries = 0, retryIn } = values;
  await pool.query(
    `INSERT INTO outbox (message_id, action, created_at, tries, retry_at, group_of)
     VALUES ('x', $1, now() - make_interval(secs => $2), $3, now() + make_interval(secs => $4),
             CASE WHEN $1 = 'group' THEN '{}'::jsonb END)`,
    [action, age, tries, retryIn ?? null],
  );
}

describe('the backlog of the outbox', () => {
  test('is counted by fleet, with the age of the oldest row', async () => {
    assert.deepEqual(
      (await readOutbox(pool)).map(({ fleet }) => fleet).sort(),
      ['chat', 'email', 'upkeep'],
      'every fleet is listed, also without a backlog',
    );
    for (const action of ['start', 'leave', 'reschedule', 'cancel', 'group']) await row(action, { age: 10 });
    for (const action of ['chat', 'chat_again']) await row(action, { age: 20 });
    await row('chore', { age: 40 });
    assert.deepEqual(backlog(await readOutbox(pool)), {
      email: [5, 10],
      chat: [2, 20],
      upkeep: [1, 40],
    });
  });

  test('ages deferred rows from their time, and refused rows from their creation', async () => {
    await row('leave', { age: 500, retryIn: 60 });
    assert.deepEqual(backlog(await readOutbox(pool)), {});
    await row('leave', { age: 500, retryIn: -5 });
    assert.deepEqual(backlog(await readOutbox(pool)), { email: [1, 5] });
    await row('start', { age: 700, tries: 3, retryIn: 60 });
    assert.deepEqual(backlog(await readOutbox(pool)), { email: [2, 700] });
  });
});

describe('the backlog of due work', () => {
  test('contains email that is not claimed, since it was due', async () => {
    const ids = [await acceptOne(pool, orgId, domain), await acceptOne(pool, orgId, domain)];
    await pool.query(`UPDATE emails SET created_at = now() - interval '1 hour' WHERE id = $1`, [ids[0]]);
    assert.deepEqual(backlog(await readDue(pool)), { email: [2, 3_600] });
    // Accepted long ago and claimed a moment ago, when it was due.
    await pool.query(`UPDATE emails SET scheduled_at = now() - interval '7 seconds' WHERE id = $1`, [ids[0]]);
    assert.deepEqual(backlog(await readDue(pool)), { email: [2, 7] });
    for (const id of ids) await force(pool, id, 'sent');
    assert.deepEqual(backlog(await readDue(pool)), {});
  });

  test('contains scheduled email from its time on', async () => {
    const [late, early] = [await acceptOne(pool, orgId, domain), await acceptOne(pool, orgId, domain)];
    for (const id of [late, early]) await force(pool, id, 'scheduled');
    await pool.query(`UPDATE emails SET scheduled_at = now() - interval '90 seconds' WHERE id = $1`, [late]);
    assert.deepEqual(backlog(await readDue(pool)), { email: [1, 90] });
  });

  test('contains scheduled chat-app messages and SMS from their time on, beside those that are queued', async () => {
    const { number } = await connect(pool, orgId);
    const inAnHour = inMs(3_600_000);
    const late = await acceptText(pool, orgId, number, {}, inAnHour);
    await acceptText(pool, orgId, number, {}, inAnHour);
    await pool.query(`UPDATE chat_messages SET scheduled_at = now() - interval '90 seconds' WHERE id = $1`, [late]);
    assert.deepEqual(backlog(await readDue(pool)), { chat: [1, 90] });
    await acceptText(pool, orgId, number);
    assert.deepEqual(backlog(await readDue(pool)), { chat: [2, 90] });
  });

  test('contains due deliveries to enabled endpoints', async () => {
    await pool.query(
      `INSERT INTO webhook_endpoints (id, org_id, url, events, secret, status)
       VALUES ('wh_1', $1, 'https://a.example', '{}', '', 'enabled'), ('wh_2', $1, 'https://b.example', '{}', '', 'disabled')`,
      [orgId],
    );
    await pool.query(
      `INSERT INTO webhook_deliveries (id, endpoint_id, event_id, type, status, created_at, next_attempt_at)
       SELECT 'whd_' || endpoint || due, endpoint, 'evt_1', 'email.sent', 'pending', now(), now() - make_interval(secs => due)
       FROM unnest(ARRAY['wh_1', 'wh_2']) AS endpoint, unnest(ARRAY[-60, 5, 15]) AS due`,
    );
    assert.deepEqual(backlog(await readDue(pool)), { webhooks: [2, 15] });
  });

  test('contains domains that are due for a check', async () => {
    await pool.query(
      `INSERT INTO domains (id, org_id, name, status, next_check_at)
       SELECT 'dm_' || due, $1, 'd' || due || '.example', 'pending', now() - make_interval(secs => due)
       FROM unnest(ARRAY[-60, 5, 15]) AS due`,
      [orgId],
    );
    assert.deepEqual(backlog(await readDue(pool)), { upkeep: [2, 15] });
    await pool.query('UPDATE domains SET next_check_at = NULL');
  });

  test('is read from indexes', async () => {
    await accept(
      pool,
      orgId,
      Array.from({ length: 2_000 }, () => newEmail(domain)),
    );
    await pool.query('ANALYZE emails, outbox');
    const works = [
      ['the outbox', readOutbox],
      ['due work', readDue],
    ] as const;
    await explainEach(pool, works, (steps, message) => {
      const scans = steps.filter((node) => node['Node Type'] === 'Seq Scan');
      const whole = new Set(scans.map((node) => node['Relation Name']));
      // These tables are small, and an index is scanned once for each row.
      whole.delete('webhook_endpoints');
      whole.delete('organizations');
      whole.delete('domains');
      assert.deepEqual([...whole], [], message);
    });
  });
});
