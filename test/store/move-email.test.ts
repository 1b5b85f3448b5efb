import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EMAIL_STATUSES } from '../../src/domain/email/email.ts';
import { projectReschedule } from '../../src/projection/emails.ts';
import { whyUnmoved } from '../../src/store/emails/emails.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { organizationFixture } from '../support/organization.ts';
import { acceptOne, emailRow, force, inInterval, inMs, organization, timeline } from './mail.ts';

const { pool, orgId } = await organizationFixture();

describe('rescheduling', () => {
  const scheduled = () => acceptOne(pool, orgId, { scheduled_at: inMs(3_600_000) });
  const actions = async (id: string) => {
    const { rows } = await pool.query<{ action: string }>(
      `SELECT action FROM outbox WHERE message_id = $1 ORDER BY id`,
      [id],
    );
    return rows.map(({ action }) => action);
  };

  test('changes time and version of a scheduled email, and writes an event and an outbox row', async () => {
    const id = await scheduled();
    for (const [i, time] of [inMs(60_000), inMs(7_200_000)].entries()) {
      assert.equal(await projectReschedule(pool, orgId, id, time), time);
      const row = await emailRow(pool, id);
      assert.deepEqual([row.status, row.scheduled_at, row.schedule_version], ['scheduled', time, i + 1]);
    }
    assert.deepEqual(await timeline(pool, id), ['scheduled', 'rescheduled', 'rescheduled']);
    assert.deepEqual(await actions(id), ['start', 'reschedule', 'reschedule']);
  });

  test('records the times before and after in the timeline', async () => {
    const [first, second] = [inMs(3_600_000), inMs(7_200_000)];
    const id = await acceptOne(pool, orgId, { scheduled_at: first });
    await projectReschedule(pool, orgId, id, second);
    const { rows } = await pool.query(`SELECT detail FROM email_events WHERE email_id = $1 ORDER BY created_at, id`, [
      id,
    ]);
    assert.deepEqual(rows, [{ detail: null }, { detail: { previous: first, scheduled_at: second } }]);
  });

  test('refuses an email in any status but scheduled, and changes nothing', async () => {
    for (const status of EMAIL_STATUSES.filter((each) => each !== 'scheduled')) {
      const id = await scheduled();
      await force(pool, id, status);
      const before = await emailRow(pool, id);
      assert.equal(await projectReschedule(pool, orgId, id, inMs(60_000)), undefined, status);
      assert.equal(await whyUnmoved(pool, orgId, id, inMs(60_000)), 'not_scheduled');
      assert.deepEqual(await emailRow(pool, id), before);
      assert.deepEqual([await timeline(pool, id), await actions(id)], [['scheduled'], ['start']]);
    }
  });

  test('returns not_found for another organization’s email', async () => {
    const id = await scheduled();
    const other = await organization(pool, 'others.example');
    assert.equal(await projectReschedule(pool, other, id, inMs(60_000)), undefined);
    assert.equal(await whyUnmoved(pool, other, id, inMs(60_000)), 'not_found');
    assert.equal(await whyUnmoved(pool, orgId, 'em_none', inMs(60_000)), 'not_found');
    assert.equal((await emailRow(pool, id)).schedule_version, 0);
  });

  test('takes times later than now and at most 30 × 24 hours ahead, to the millisecond', async () => {
    const bounds: [string, 'past' | 'far' | undefined][] = [
      ['-1 hour', 'past'],
      ['0', 'past'],
      ['1 millisecond', undefined],
      ['720 hours', undefined],
      ['720 hours 1 millisecond', 'far'],
      ['10 years', 'far'],
    ];
    for (const timezone of ['UTC', 'Europe/Berlin'])
      for (const [interval, problem] of bounds) {
        const id = await scheduled();
        await transaction(pool, async (client) => {
          await client.query(`SET LOCAL timezone = '${timezone}'`);
          const time = await inInterval(client, interval);
          const moved = await projectReschedule(client, orgId, id, time);
          assert.equal(moved, problem === undefined ? time : undefined, interval);
          if (problem !== undefined) assert.equal(await whyUnmoved(client, orgId, id, time), problem);
        });
        assert.equal((await emailRow(pool, id)).schedule_version, problem === undefined ? 1 : 0, interval);
      }
  });

  test('returns far for a refused time that became valid before the reason was read', async () => {
    const id = await scheduled();
    assert.equal(await whyUnmoved(pool, orgId, id, inMs(29 * 24 * 3_600_000)), 'far');
    assert.equal(await whyUnmoved(pool, orgId, id, null), 'not_scheduled');
  });

  test('concurrent reschedules each increase the version by one', async () => {
    const id = await scheduled();
    const times = Array.from({ length: 20 }, (_, i) => inMs(60_000 + i * 1_000));
    await Promise.all(times.map((time) => projectReschedule(pool, orgId, id, time)));
    assert.equal((await emailRow(pool, id)).schedule_version, 20);
    assert.equal((await timeline(pool, id)).length, 21);
    assert.equal((await actions(id)).length, 21);
  });

  test('is recorded after the last event, also when that event is in the future', async () => {
    const id = await scheduled();
    await pool.query(`UPDATE emails SET last_event_at = now() + interval '1 hour' WHERE id = $1`, [id]);
    const { last_event_at } = await emailRow(pool, id);
    await projectReschedule(pool, orgId, id, inMs(60_000));
    assert.equal(Date.parse((await emailRow(pool, id)).last_event_at), Date.parse(last_event_at) + 1);
  });
});
