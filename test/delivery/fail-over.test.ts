import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeFailOverCheck } from '../../src/delivery/fail-over.ts';
import { endAttempts } from '../../src/store/emails/attempts.ts';
import type { LookUp } from '../../src/store/emails/stuck.ts';
import { readTimeline } from '../../src/store/upkeep/forgotten.ts';
import { acceptText, connect } from '../store/chats.ts';
import { captureLog } from '../support/captured-log.ts';
import { inMs } from '../store/mail.ts';
import { organizationFixture } from '../support/organization.ts';
import { chatHarness, ScriptedChat } from './chat-harness.ts';
import { harnessWithProvider } from './harness.ts';

const { pool, orgId } = await organizationFixture(10);
const { log } = captureLog('info');
const POSTMARK: LookUp = { provider: 'postmark', canBeAsked: true };

/** A worker opens its session with a server that has failed over, or has not. */
async function connectWorker(hasFailedOver: boolean, lookUp = POSTMARK): Promise<void> {
  if (hasFailedOver) await pool.query(`UPDATE postgres_timeline SET timeline = 'another'`);
  await makeFailOverCheck({ pool, lookUp, messageProviders: ['twilio'], log })(pool);
}

async function callsOf(id: string): Promise<{ call: string; outcome: string | null }[]> {
  const { rows } = await pool.query<{ call: string; outcome: string | null }>(
    'SELECT call, outcome FROM attempts WHERE message_id = $1 ORDER BY n',
    [id],
  );
  return rows;
}

describe('after a fail-over', () => {
  test('an email that Postgres forgot to have sent is not sent again, and one that was not sent is', async () => {
    await connectWorker(false);
    const { accept, deliverOne, provider, age, outcomes } = harnessWithProvider(pool, orgId);
    const [forgotten, unsent] = [await accept(), await accept()];
    provider.take(forgotten, 'call_forgotten');
    await connectWorker(true);
    assert.equal((await deliverOne(forgotten)).state, 'ended');
    assert.equal((await deliverOne(unsent)).state, 'again');
    await age(unsent.id, 61);
    assert.equal((await deliverOne(unsent)).state, 'ended');
    assert.deepEqual(provider.tookIds, [forgotten.id, unsent.id]);
    assert.deepEqual([await outcomes(forgotten.id), await outcomes(unsent.id)], [['sent'], ['lost', 'sent']]);
  });

  test('marks only open messages that were due lately, and only once', async () => {
    const { accept } = harnessWithProvider(pool, orgId);
    const from = (await connect(pool, orgId)).number;
    const meta = (await connect(pool, orgId, 'meta')).number;
    const recent = (await accept()).id;
    const old = (await accept()).id;
    const retried = (await accept()).id;
    const later = (await accept({ scheduled_at: inMs(3_600_000) })).id;
    const sent = (await accept()).id;
    const [chat, toMeta] = [await acceptText(pool, orgId, from), await acceptText(pool, orgId, meta)];
    await pool.query(`UPDATE emails SET created_at = now() - interval '1 hour' WHERE id = ANY ($1)`, [[old, retried]]);
    await pool.query(`UPDATE emails SET status = 'sent' WHERE id = $1`, [sent]);
    await pool.query(
      `INSERT INTO attempts (message_id, n, call, provider, outcome) VALUES ($1, 1, 'c', 'postmark', 'again')`,
      [retried],
    );
    await connectWorker(true);
    await connectWorker(false);
    for (const id of [recent, chat]) assert.deepEqual(await callsOf(id), [{ call: id, outcome: 'unknown' }]);
    assert.deepEqual(await callsOf(retried), [
      { call: 'c', outcome: 'again' },
      { call: retried, outcome: 'unknown' },
    ]);
    for (const id of [old, later, sent, toMeta]) assert.deepEqual(await callsOf(id), []);
  });

  test('a message whose claim is forgotten is sent by the answer to its call, which is recorded afterwards', async () => {
    const { accept, deliverOne, email, provider } = harnessWithProvider(pool, orgId);
    const member = await accept({ scheduled_at: inMs(1_000) });
    await pool.query('UPDATE emails SET scheduled_at = created_at WHERE id = $1', [member.id]);
    const chat = await acceptText(pool, orgId, (await connect(pool, orgId)).number);
    await pool.query(`UPDATE chat_messages SET status = 'scheduled', scheduled_at = created_at WHERE id = $1`, [chat]);
    await connectWorker(true);
    // The worker made this call before the fail-over. Its attempt has the number of the one that the check has inserted.
    const answer = { n: 1, outcome: 'sent', detail: null } as const;
    await endAttempts(pool, [
      { ...answer, message_id: member.id, provider_message_id: 'postmark-1' },
      { ...answer, message_id: chat, provider_message_id: 'SM1' },
    ]);
    assert.equal((await email(member.id)).status, 'scheduled');
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.equal((await email(member.id)).status, 'sent');
    assert.deepEqual(provider.tookIds, []);
    assert.equal((await chatHarness(pool, new ScriptedChat()).deliver(chat)).state, 'ended');
    const { rows } = await pool.query('SELECT status FROM chat_messages WHERE id = $1', [chat]);
    assert.deepEqual(rows, [{ status: 'sent' }]);
  });

  test('marks no email if no provider can be asked', async () => {
    const { accept } = harnessWithProvider(pool, orgId, {}, 'smtp');
    const { id } = await accept();
    await connectWorker(true, { provider: 'smtp', canBeAsked: false });
    assert.deepEqual(await callsOf(id), []);
  });

  test('a session with a server that still recovers is refused, so that the check is made when it has been promoted', async () => {
    const recovers = Object.assign(new Error('recovery is in progress'), { code: '55000' });
    const session = { query: () => Promise.reject(recovers) } as unknown as typeof pool;
    const check = makeFailOverCheck({ pool, lookUp: POSTMARK, messageProviders: [], log });
    await assert.rejects(check(session), recovers);
  });

  test('the timeline is recorded, which any role may read', async () => {
    await connectWorker(true);
    const { rows } = await pool.query<{ timeline: string }>('SELECT timeline FROM postgres_timeline');
    assert.deepEqual(rows, [{ timeline: await readTimeline(pool) }]);
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      await client.query('CREATE ROLE without_rights');
      await client.query('SET LOCAL ROLE without_rights');
      assert.match(await readTimeline(client), /^\d+ [0-9A-F]{8}$/);
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  });
});
