import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readWindow } from '../../src/store/chat/window.ts';
import { type Db, transaction } from '../../src/store/postgres/pool.ts';
import { connect } from './chats.ts';
import { organization } from './mail.ts';
import { organizationFixture } from '../support/organization.ts';
import { explainEach, readBy } from '../support/plans.ts';

const { pool, orgId } = await organizationFixture(2);
const { id: numberId, number: from } = await connect(pool, orgId);
const USER = { wa_number: '+14165550123', user_id: 'CA.2', former_user_id: 'CA.1' };

/** The window of a recipient who wrote so many seconds ago, both by the clock of one transaction. */
function windowAfter(seconds: number | null, to: string, given: { org_id?: string; receivesFor?: number } = {}) {
  return transaction(pool, async (client) => {
    await client.query('DELETE FROM chat_contacts');
    await client.query(
      `INSERT INTO chat_contacts (org_id, number, wa_number, user_id, former_user_id, last_inbound_at)
       SELECT $1, $2, $3, $4, $5, now() - make_interval(secs => $6) WHERE $6::float8 IS NOT NULL`,
      [orgId, from, USER.wa_number, USER.user_id, USER.former_user_id, seconds],
    );
    await client.query('UPDATE chat_numbers SET receives_since = now() - make_interval(secs => $2) WHERE id = $1', [
      numberId,
      given.receivesFor ?? null,
    ]);
    return readWindow(client, { org_id: given.org_id ?? orgId, from, to });
  });
}

const DAY = 86_400;

describe('a customer-service window', () => {
  for (const [seconds, is_open] of [
    [0, true],
    [DAY - 1, true],
    [DAY - 0.01, true],
    [DAY + 0.01, false],
    [DAY + 1, false],
  ] as const) {
    test(`is ${is_open ? 'open' : 'closed'} ${seconds} s after the user wrote`, async () => {
      for (const to of Object.values(USER)) {
        assert.deepEqual(await windowAfter(seconds, to), { is_open, is_known: true }, to);
      }
    });
  }

  test('of a user who never wrote is known once the number has received messages for a day', async () => {
    for (const [receivesFor, is_known] of [
      [undefined, false],
      [DAY - 1, false],
      [DAY + 1, true],
    ] as const) {
      const given = receivesFor === undefined ? {} : { receivesFor };
      assert.deepEqual(await windowAfter(null, USER.wa_number, given), { is_open: false, is_known });
      assert.deepEqual(await windowAfter(0, '+14165559999', given), { is_open: false, is_known });
    }
  });

  test('is that of a user whose WhatsApp id differs from the number', async () => {
    for (const [dialled, id] of [
      ['+5561987654321', '+556187654321'],
      ['+541123456789', '+5491123456789'],
    ] as const) {
      await transaction(pool, async (client) => {
        await client.query(
          'INSERT INTO chat_contacts (org_id, number, wa_number, last_inbound_at) VALUES ($1, $2, $3, now())',
          [orgId, from, id],
        );
        const window = await readWindow(client, { org_id: orgId, from, to: dialled });
        assert.deepEqual(window, { is_open: true, is_known: true });
      });
    }
  });

  test('is read by indexes', async () => {
    const CONTACTS = 5_000;
    await pool.query(
      `INSERT INTO chat_contacts (org_id, number, wa_number, user_id, former_user_id)
       SELECT $1, $2, '+5561' || 987000000 + n, 'BR.' || n, 'BR.old' || n FROM generate_series(1, $3::int) AS n`,
      [orgId, from, CONTACTS],
    );
    await pool.query('ANALYZE chat_contacts');
    const read = (to: string) => (db: Db) => readWindow(db, { org_id: orgId, from, to });
    const works = [
      ['of a number', read('+5561987000007')],
      ['of a user id', read('BR.7')],
    ] as const;
    await explainEach(pool, works, (steps, message) => {
      for (const node of steps) assert.ok(readBy(node) <= 10, message);
    });
  });

  test('is that of one organization', async () => {
    const other = await organization(pool);
    assert.deepEqual(await windowAfter(0, USER.wa_number, { org_id: other, receivesFor: DAY + 1 }), {
      is_open: false,
      is_known: false,
    });
  });
});
