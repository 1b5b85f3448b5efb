import assert from 'node:assert/strict';
import { test } from 'node:test';
import { insertMessageTags } from '../../src/store/messages/accept.ts';
import { projectMessages } from '../../src/projection/messages.ts';
import { expireMessages } from '../../src/upkeep/partitions.ts';
import { acceptText, connect } from '../store/chats.ts';
import { organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';

const DAY = 86_400_000;
const { pool } = await useDatabase();
const orgId = await organization(pool);
const { number } = await connect(pool, orgId);

test('deletes messages after the retention with everything of them, but none that is still to be sent', async () => {
  const [ended, open] = [await acceptText(pool, orgId, number), await acceptText(pool, orgId, number)];
  const tags = [{ name: 'kind', value: 'code' }];
  await pool.query(`UPDATE chat_messages SET tags = $1`, [JSON.stringify(tags)]);
  for (const id of [ended, open]) await insertMessageTags(pool, orgId, { id, channel: 'chatapp', tags });
  await pool.query(
    `UPDATE message_tags AS tag SET created_at = message.created_at FROM chat_messages AS message WHERE id = message_id`,
  );
  await pool.query(
    `INSERT INTO attempts (message_id, n, call, provider, outcome) SELECT id, 1, 'c', 'twilio', 'sent' FROM chat_messages`,
  );
  await projectMessages(pool, 'sent', [{ id: ended, provider: 'twilio' }]);
  const left = async () => {
    const { rows } = await pool.query<{ id: string }>(
      `SELECT id FROM chat_messages UNION SELECT message_id FROM chat_events UNION SELECT message_id FROM message_tags
       UNION SELECT message_id FROM attempts`,
    );
    return rows.map(({ id }) => id).sort();
  };
  const expire = async (emailRetentionDays: number, days: number) => {
    while ((await expireMessages({ pool, emailRetentionDays }, Date.now() + days * DAY, 1)).next !== null);
  };
  await expire(40, 39);
  await expire(0, 400);
  assert.deepEqual(await left(), [ended, open].sort());
  await expire(40, 41);
  assert.deepEqual(await left(), [open]);
});
