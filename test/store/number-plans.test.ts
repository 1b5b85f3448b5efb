import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { findAnsweredMessage, findInboundMedia } from '../../src/store/chat/inbound.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { explainEach, readBy } from '../support/plans.ts';
import { organization } from './mail.ts';

const { pool } = await useDatabase(2);
const orgId = await organization(pool);
const NUMBERS = 5_000;

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
  await pool.query('ANALYZE');
});

const user = { wa_number: '+14165550123', user_id: null, former_user_id: null, username: null, last_inbound_at: null };
const receiver = { id: 'num_7', org_id: orgId, number: '+12025551007', provider: 'twilio' } as const;

const WORKS: readonly (readonly [string, (db: Db) => Promise<unknown>])[] = [
  ['the file of a message', (db) => findInboundMedia(db, 'in_7', Date.now() / 1_000 + 60)],
  ['the message that a user answers', (db) => findAnsweredMessage(db, receiver, user, 'SM7')],
];
for (const [what, work] of WORKS) {
  test(`few rows are read for ${what}`, () =>
    explainEach(pool, [[what, work]], (steps, message) => {
      for (const node of steps) assert.ok(readBy(node) <= 10, message);
    }));
}
