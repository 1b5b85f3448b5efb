import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type ChatChange, nextChatStatus } from '../../src/domain/chat/states.ts';
import type { ChatStatus } from '../../src/domain/chat/chat.ts';
import { newId } from '../../src/domain/ids.ts';
import { projectChat, projectChatReports } from '../../src/projection/chat.ts';
import type { ChatReport } from '../../src/providers/chat-provider.ts';
import { insertEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { acceptText, chatRow, chatTimeline, connect, TO } from '../store/chats.ts';
import { organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase(8);
const orgId = await organization(pool);
const from = (await connect(pool, orgId)).number;

const accept = () => acceptText(pool, orgId, from);

function told(id: string, change: ChatReport['change'], fields: Partial<ChatReport> = {}): ChatReport {
  const failure = change === 'failed' ? { error: 'Twilio could not deliver it.', errorCode: '63024' } : {};
  return { change, messageId: id, providerMessageId: 'SM1', dedupeKey: `SM1 ${change}`, ...failure, ...fields };
}
const report = (...reports: ChatReport[]) => projectChatReports(pool, 'twilio', reports);

describe('reports of a provider', () => {
  test('move a message on, and are noted', async () => {
    const id = await accept();
    for (const change of ['sent', 'delivered', 'read'] as const) assert.equal(await report(told(id, change)), true);
    assert.equal((await chatRow(pool, id)).status, 'read');
    assert.deepEqual(await chatTimeline(pool, id), ['queued', 'sent', 'delivered', 'read']);
  });

  test('§6: that come late never lower the status, and are noted', async () => {
    const id = await accept();
    for (const change of ['read', 'delivered', 'failed', 'sent'] as const) await report(told(id, change));
    const { status, error } = await chatRow(pool, id);
    assert.deepEqual([status, error], ['read', null]);
    assert.deepEqual(await chatTimeline(pool, id), ['queued', 'read', 'delivered', 'failed', 'sent']);
  });

  test('of a failure say why; a delivery that comes after all takes it back', async () => {
    const id = await accept();
    await report(told(id, 'sent'), told(id, 'failed'));
    const { status, error, error_code, look_in } = await chatRow(pool, id);
    assert.deepEqual([status, error, error_code, look_in], ['failed', 'Twilio could not deliver it.', '63024', null]);
    await report(told(id, 'delivered'));
    const row = await chatRow(pool, id);
    assert.deepEqual([row.status, row.error, row.error_code], ['delivered', null, null]);
  });

  test('of a failure without a reason have one all the same', async () => {
    const id = await accept();
    await report({ change: 'failed', messageId: id, providerMessageId: 'SM1', dedupeKey: 'SM1 failed' });
    assert.match((await chatRow(pool, id)).error ?? '', /could not deliver/);
  });

  test('repeated 50 times, at the same time too, are noted once', async () => {
    const id = await accept();
    for (let i = 0; i < 20; i++) await report(told(id, 'delivered'));
    await Promise.all(Array.from({ length: 30 }, () => report(told(id, 'delivered'), told(id, 'sent'))));
    assert.deepEqual((await chatTimeline(pool, id)).sort(), ['delivered', 'queued', 'sent']);
  });

  test('that it was sent is told once, by our own record and by the provider’s report, whichever is first', async () => {
    const wish = (id: string) => ({ id, provider: 'twilio' as const, provider_message_id: 'SM1', dedupe_key: 'call' });
    const [first, second] = [await accept(), await accept()];
    await projectChat(pool, 'sent', [wish(first)]);
    await report(told(first, 'sent'));
    await report(told(second, 'sent'));
    await projectChat(pool, 'sent', [wish(second)]);
    for (const id of [first, second]) {
      assert.deepEqual(await chatTimeline(pool, id), ['queued', 'sent']);
      const { provider, provider_message_id, look_in } = await chatRow(pool, id);
      assert.deepEqual([provider, provider_message_id, look_in], ['twilio', 'SM1', 2]);
    }
  });

  test('about nothing of ours change nothing, and say so', async () => {
    const id = newId('wa', Date.now());
    assert.equal(await report(told(id, 'sent')), false);
    assert.equal(await report(told(id, 'sent', { messageId: undefined })), false);
    assert.equal(await report(), false);
    assert.equal(await report(told(id, 'sent'), told(await accept(), 'sent')), true);
  });

  test('our own failure is nothing once something was reported', async () => {
    const id = await accept();
    await report(told(id, 'sent'));
    await projectChat(pool, 'failed', [{ id, error: 'Given up.', dedupe_key: 'failed' }]);
    assert.equal((await chatRow(pool, id)).status, 'sent');
    assert.deepEqual(await chatTimeline(pool, id), ['queued', 'sent']);
  });

  test('in any order, with any repeats, come to the same', async () => {
    const changes = ['sent', 'delivered', 'read', 'failed'] as const;
    const reports = fc.array(fc.constantFrom(...changes), { minLength: 1, maxLength: 6 });
    const asChange = (change: ChatReport['change']): ChatChange => (change === 'failed' ? 'undelivered' : change);
    await fc.assert(
      fc.asyncProperty(reports, fc.boolean(), async (given, together) => {
        const id = await accept();
        if (together) await report(...given.map((change) => told(id, change)));
        else for (const change of given) await report(told(id, change));
        const expected = given.map(asChange).reduce<ChatStatus>(nextChatStatus, 'queued');
        assert.equal((await chatRow(pool, id)).status, expected);
        assert.deepEqual((await chatTimeline(pool, id)).sort(), [...new Set(['queued', ...given])].sort());
      }),
      { numRuns: 60 },
    );
  });

  test('about the same messages in many ways at a time do not wait in a circle', async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, accept));
    const all = ids.flatMap((id) => (['sent', 'delivered', 'read'] as const).map((change) => told(id, change)));
    await Promise.all(Array.from({ length: 12 }, (_, i) => report(...(i % 2 ? all : all.toReversed()).slice(i % 5))));
    await report(...all);
    for (const id of ids) assert.equal((await chatRow(pool, id)).status, 'read');
  });
});

test('endpoints are told, with the message’s id and what there is to know', async () => {
  const own = await organization(pool, 'chat.example');
  const number = await connect(pool, own);
  const endpoint = {
    id: newId('wh', Date.now()),
    url: 'https://hooks.example/chat',
    events: ['chatapp.sent', 'chatapp.failed'],
    description: null,
  };
  await insertEndpoint(pool, own, endpoint, Buffer.from('sealed'));
  const id = await acceptText(pool, own, number.number);
  await report(told(id, 'sent'), told(id, 'sent'), told(id, 'failed'), told(id, 'delivered'));
  const { rows } = await pool.query<{ type: string; message_id: string | null; data: object }>(
    `SELECT type, message_id, data FROM webhook_events WHERE org_id = $1 ORDER BY created_at, id`,
    [own],
  );
  const common = { messageId: id, from: number.number, to: TO, country: 'DE', type: 'text' };
  assert.deepEqual(rows, [
    { type: 'chatapp.sent', message_id: null, data: { ...common, status: 'sent' } },
    {
      type: 'chatapp.failed',
      message_id: null,
      data: { ...common, status: 'failed', error: 'Twilio could not deliver it.', errorCode: '63024' },
    },
  ]);
});
