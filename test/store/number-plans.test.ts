import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { findAnsweredMessage, findInboundMedia } from '../../src/store/chat/inbound.ts';
import { reassignMessages } from '../../src/store/messages/changes.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { organizationFixture } from '../support/organization.ts';
import { explainEach, readBy } from '../support/plans.ts';

const { pool, orgId } = await organizationFixture(2);
const NUMBERS = 5_000;
const SENT = 20_000;
/** Messages of the last days, which are few here. */
const RECENT = 50;
/** An index also contains the versions of rows that were rolled back. */
const MAX_ROWS = 10 * RECENT;
const FROM = '+120255501000';

before(async () => {
  await pool.query(
    `INSERT INTO chat_numbers (id, org_id, number, provider, verified_by)
     SELECT 'num_' || n, $1, '+1202555' || 1000 + n, 'twilio', 'operator' FROM generate_series(1, $2::int) AS n`,
    [orgId, NUMBERS],
  );
  await pool.query(
    `INSERT INTO chat_inbound (id, org_id, number_id, number, provider, provider_message_id, media, content_type)
     SELECT 'in_' || n, $1, 'num_former', '+1202555' || 1000 + n, 'twilio', 'SM' || n, '/Media/ME1', 'image/png'
     FROM generate_series(1, $2::int) AS n`,
    [orgId, NUMBERS],
  );
  await pool.query(
    `INSERT INTO chat_messages (id, org_id, number_id, "from", "to", country, type, content, status, created_at, last_event_at, provider)
     SELECT 'wa_' || n, $1, 'num_former', $2, '+12025550101', 'US', 'text', '{}', 'sent', at, at, 'twilio'
     FROM generate_series(1, $3::int) AS n,
          LATERAL (SELECT now() - CASE WHEN n <= $4 THEN '1 day' ELSE '60 days' END::interval AS at) AS time`,
    [orgId, FROM, SENT, RECENT],
  );
  await pool.query('ANALYZE');
});

const user = { wa_number: '+14165550123', user_id: null, former_user_id: null, username: null, last_inbound_at: null };
const receiver = { id: 'num_7', org_id: orgId, number: '+12025551007', provider: 'twilio' } as const;
const connection = { id: 'num_7', from: FROM, provider: 'twilio' } as const;

const WORKS: readonly (readonly [string, (db: Db) => Promise<unknown>])[] = [
  ['the file of a message', (db) => findInboundMedia(db, 'in_7', Date.now() / 1_000 + 60)],
  ['the message that a user answers', (db) => findAnsweredMessage(db, receiver, user, 'SM7')],
  [
    'the messages of a number that is connected again',
    (db) => reassignMessages(db, { orgId, channel: 'chatapp' }, connection),
  ],
];
for (const [what, work] of WORKS) {
  test(`few rows are read for ${what}`, () =>
    explainEach(pool, [[what, work]], (steps, message) => {
      for (const node of steps) assert.ok(readBy(node) <= MAX_ROWS, message);
    }));
}
