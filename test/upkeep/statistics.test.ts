import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STATES } from '../../src/domain/statistics.ts';
import { project, projectChanges } from '../../src/projection/emails.ts';
import { projectMessages } from '../../src/projection/messages.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { readSeries } from '../../src/store/statistics/series.ts';
import { backfillStatistics } from '../../src/upkeep/statistics.ts';
import { acceptText, connect } from '../store/chats.ts';
import { accept, acceptOne, newEmail, organization } from '../store/mail.ts';
import { countEmails, readFigures } from '../store/statistics-truth.ts';
import { organizationFixture } from '../support/organization.ts';

const { pool, orgId } = await organizationFixture();
const SOON = Date.now() + 120_000;
const EVER = { from: new Date(0), to: new Date(SOON) };

/** What the migration inserts for an installation that has messages. */
async function beginBackfill(): Promise<void> {
  await pool.query(
    `INSERT INTO stat_backfills (channel, last_id, end_id)
     SELECT channel, prefix, prefix || substr(email_id_at(now() + interval '1 day'), 4)
     FROM (VALUES ('email', 'em_'), ('chatapp', 'wa_'), ('sms', 'sms_')) AS kind(channel, prefix)
     ON CONFLICT (channel) DO UPDATE SET last_id = excluded.last_id, end_id = excluded.end_id`,
  );
}

/** Makes messages look as the version before has stored them. */
async function forget(ids: readonly string[]): Promise<void> {
  await pool.query(`UPDATE emails SET reached = NULL, bounced_for = NULL WHERE id = ANY ($1)`, [ids]);
  await pool.query(`UPDATE chat_messages SET reached = NULL WHERE id = ANY ($1)`, [ids]);
  await pool.query('DELETE FROM stat_additions WHERE org_id = $1', [orgId]);
}

async function backfill(now = SOON): Promise<void> {
  while ((await backfillStatistics(pool, now, 3)).next !== null);
}

test('the backfill counts what the version before has accepted and changed, once', async () => {
  const emails = Array.from({ length: 10 }, (_, n) =>
    newEmail({ tags: [{ name: 'kind', value: `v${n % 2}` }], batch_id: n < 5 ? 'bt_1' : null }),
  );
  await accept(pool, orgId, emails);
  const inputs = emails.map(({ id }) => ({ id }));
  await project(pool, 'sent', inputs.slice(1));
  await project(pool, 'opened', inputs.slice(2, 6));
  for (const change of ['opened_by_machine', 'clicked_by_machine'] as const)
    await project(pool, change, inputs.slice(4));
  const bounce = { recipient: 'a@example.net', error: 'no', bounce_reason: 'mailbox_full' as const };
  await project(pool, 'bounced', [{ id: emails[6]?.id ?? '', ...bounce }]);
  await project(pool, 'complained', [{ id: emails[6]?.id ?? '', recipient: 'a@example.net' }]);
  await forget(emails.map(({ id }) => id));
  // This version leaves them to the backfill, so that they are not counted twice.
  await project(pool, 'clicked', inputs.slice(2, 3));
  assert.deepEqual(await readFigures(pool, orgId, ['kind']), {});

  await beginBackfill();
  await backfill(Date.now());
  assert.deepEqual(await readFigures(pool, orgId, ['kind']), {}, 'younger ones may not be committed yet');
  await backfill();
  const truth = await countEmails(pool, orgId);
  assert.deepEqual(await readFigures(pool, orgId, ['kind']), truth);
  const [all] = await readSeries(
    pool,
    orgId,
    { channel: 'email', ...EVER, step: 'day', dimension: 'all', key: null },
    1,
  );
  const { opened, clicked } = all?.points[0] ?? {};
  assert.deepEqual([opened, clicked], [4, 1], 'without those of machines');
  await project(pool, 'delivered', inputs.slice(5, 8));

  // What the version before changes meanwhile is not counted; a second look finds it.
  const [uncounted] = inputs.slice(8);
  assert.ok(uncounted);
  await transaction(pool, async (client) => {
    const { rows } = await client.query<{ reached: number }>('SELECT reached FROM emails WHERE id = $1', [
      uncounted.id,
    ]);
    await projectChanges(client, [{ change: 'delivered', input: uncounted }]);
    await client.query('UPDATE emails SET reached = $2 WHERE id = $1', [uncounted.id, rows[0]?.reached]);
    await client.query('DELETE FROM stat_additions WHERE xmin = pg_current_xact_id()::xid');
  });
  await beginBackfill();
  await backfill();
  assert.deepEqual(await readFigures(pool, orgId, ['kind']), await countEmails(pool, orgId));
});

test('the backfill counts chat-app messages', async () => {
  const { number } = await connect(pool, orgId);
  const ids = [await acceptText(pool, orgId, number), await acceptText(pool, orgId, number)];
  await projectMessages(pool, 'read', [{ id: ids[0] ?? '' }]);
  await forget(ids);
  await beginBackfill();
  await backfill();
  const period = { from: new Date(SOON - 86_400_000), to: new Date(SOON) };
  const filter = { channel: 'chatapp', ...period, step: 'day', dimension: 'all', key: null } as const;
  const [series] = await readSeries(pool, orgId, filter, 1);
  const { accepted, sent, delivered, opened } = series?.points[0] ?? {};
  assert.deepEqual([accepted, sent, delivered, opened], [2, 1, 1, 1]);
});

test('a second pass a day after the upgrade counts what the version before changed behind the first', async () => {
  const other = await organization(pool, 'other.example');
  const id = await acceptOne(pool, other, { from_domain: 'other.example', from: 'hello@other.example' });
  await pool.query('UPDATE emails SET reached = NULL WHERE id = $1', [id]);
  await pool.query('DELETE FROM stat_additions WHERE org_id = $1', [other]);
  await beginBackfill();
  await backfill();
  // As 0.1.0 does it, which does not know the statistics.
  await pool.query(
    `INSERT INTO email_events (email_id, id, type, created_at) VALUES ($1, 'evt_1', 'email.delivered', now())`,
    [id],
  );
  await pool.query(`UPDATE emails SET status = 'delivered' WHERE id = $1`, [id]);

  const rows = async () => (await pool.query('SELECT FROM stat_backfills')).rowCount;
  assert.equal(await rows(), 3, 'it goes on for a day');
  const later = Date.now() + 2 * 86_400_000;
  for (let run = 0; run < 5; run++) await backfill(later);
  assert.equal(await rows(), 0);
  const figures = await readFigures(pool, other, []);
  assert.deepEqual(figures, await countEmails(pool, other));
  const [all = []] = Object.values(figures);
  assert.equal(all[STATES.indexOf('delivered')], 1);
});
