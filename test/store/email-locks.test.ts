import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lockEmails, lockStatuses } from '../../src/store/emails/attempts.ts';
import { eventually } from '../support/eventually.ts';
import { organizationFixture } from '../support/organization.ts';
import { acceptOne } from './mail.ts';

const { pool, orgId } = await organizationFixture(5);

for (const lock of [lockEmails, lockStatuses])
  test(`${lock.name} sees the deferred recipients that the transaction it waited for has recorded`, async () => {
    const id = await acceptOne(pool, orgId);
    const [recording, claiming] = [await pool.connect(), await pool.connect()];
    await recording.query('BEGIN');
    await recording.query(`UPDATE emails SET status = 'sent', deferred = true WHERE id = $1`, [id]);
    await recording.query(`INSERT INTO email_recipients (email_id, recipient, status) VALUES ($1, 'b', 'queued')`, [
      id,
    ]);
    await claiming.query('BEGIN');
    const locked = lock(claiming, [id]);
    await eventually('it waits', async () => {
      const { rowCount } = await pool.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return rowCount === 1;
    });
    await recording.query('COMMIT');
    const found = await locked;
    assert.equal(Array.isArray(found) ? found[0]?.copies_left : found.get(id) === 'queued', true);
    await claiming.query('COMMIT');
    recording.release();
    claiming.release();
  });
