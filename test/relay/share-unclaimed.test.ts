import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OutboxRow } from '../../src/store/outbox/outbox.ts';
import { postponeMessageChecks } from '../../src/store/messages/stuck.ts';
import { acceptSms } from '../store/chats.ts';
import { acceptMany, acceptOne, inMs } from '../store/mail.ts';
import { eventually } from '../support/eventually.ts';
import { organizationFixture } from '../support/organization.ts';
import { useRelays } from './harness.ts';

const { pool, orgId } = await organizationFixture();
const { start } = useRelays(pool);

const emailsOf = (row: OutboxRow) => (row.action === 'group' ? row.members.map(({ id }) => id) : [row.message_id]);

/** An email that has been due for ten seconds, whose own workflow no worker has run. */
async function unclaimed(): Promise<string> {
  const id = await acceptOne(pool, orgId, { scheduled_at: inMs(3_600_000) });
  await pool.query('DELETE FROM outbox');
  await pool.query(`UPDATE emails SET scheduled_at = now() - interval '10 seconds' WHERE id = $1`, [id]);
  return id;
}

async function unclaimedSms(): Promise<string> {
  const id = await acceptSms(pool, orgId, { scheduledAt: inMs(3_600_000) });
  await pool.query('DELETE FROM outbox');
  await pool.query(
    `UPDATE chat_messages SET scheduled_at = now() - interval '10 seconds', look_at = now() + interval '590 seconds'
     WHERE id = $1`,
    [id],
  );
  return id;
}

test('sends scheduled emails that their workflows have not claimed by a shared one, as late', async () => {
  const ids = [await unclaimed(), await unclaimed()];
  const { rows } = start(undefined, { startsPerSecond: 20 });
  await eventually('they are dispatched', () => ids.every((id) => rows.flatMap(emailsOf).includes(id)));
  assert.deepEqual(
    rows.map((row) => [row.action, row.action === 'group' && row.is_late, emailsOf(row).sort()]),
    [['group', true, ids.sort()]],
  );
});

test('does the same for SMS, and not for one that a worker has claimed and postponed', async () => {
  const [waiting, postponed] = [await unclaimedSms(), await unclaimedSms()];
  await postponeMessageChecks(pool, [postponed], 60_000);
  const { rows } = start(undefined, { startsPerSecond: 20 });
  await eventually('it is dispatched', () => rows.flatMap(emailsOf).includes(waiting));
  assert.deepEqual(
    rows.map((row) => [row.action, row.action === 'group' && [row.is_late, row.channel], emailsOf(row)]),
    [['group', [true, 'sms'], [waiting]]],
  );
});

test('leaves them to their workflows from 10,000 starts a second on', async () => {
  const id = await unclaimed();
  const { rows, wake } = start(undefined, { startsPerSecond: 10_000 });
  const [other = ''] = await acceptMany(pool, orgId, 1);
  wake();
  await eventually('another email is dispatched', () => rows.flatMap(emailsOf).includes(other));
  assert.ok(!rows.flatMap(emailsOf).includes(id));
});
