import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lockMessageRows } from '../../src/store/outbox/outbox.ts';
import { acceptText, connect } from '../store/chats.ts';
import { accept, acceptMany, inMs, newEmail, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { useRelays } from './harness.ts';

const { pool } = await useDatabase(10);
const relays = useRelays(pool);

describe('the rows of one organization do not delay', () => {
  test('an email of another that is due, if they are emails scheduled for later', async () => {
    const [busy, other] = [await organization(pool, 'busy.example'), await organization(pool)];
    const scheduled_at = inMs(3_600_000);
    for (let part = 0; part < 3; part++) {
      const emails = Array.from({ length: 1_000 }, () => newEmail({ from_domain: 'busy.example', scheduled_at }));
      await accept(pool, busy, emails);
    }
    const [due = ''] = await acceptMany(pool, other, 1);
    const { ids } = relays.start(undefined, { startsPerSecond: 20, now: () => 0 });
    await eventually('some are dispatched', () => ids().length >= 100);
    assert.ok(ids().slice(0, 100).includes(due));
  });

  test('a chat-app message of another', async () => {
    const [busy, other] = [await organization(pool, 'a.example'), await organization(pool, 'b.example')];
    const [fromBusy, fromOther] = [(await connect(pool, busy)).number, (await connect(pool, other)).number];
    for (let i = 0; i < 700; i++) await acceptText(pool, busy, fromBusy);
    const single = await acceptText(pool, other, fromOther);
    const { rows } = relays.start(undefined, { startsPerSecond: 20, now: () => 0 });
    const members = () => rows.flatMap((row) => (row.action === 'group' ? row.members.map(({ id }) => id) : []));
    await eventually('the first group is dispatched', () => members().length > 0);
    assert.ok(members().includes(single));
  });

  test('a chat-app message of another, if one row is locked at a time', async () => {
    const [busy, other] = [await organization(pool, 'c.example'), await organization(pool, 'd.example')];
    const [fromBusy, fromOther] = [(await connect(pool, busy)).number, (await connect(pool, other)).number];
    for (let i = 0; i < 5; i++) await acceptText(pool, busy, fromBusy);
    const single = await acceptText(pool, other, fromOther);
    await eventually('it is locked', async () => (await lockMessageRows(pool, 1))[0]?.message_id === single);
  });
});
