import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { MessageStatus } from '../../src/domain/messages/message.ts';
import { messageTransition, nextMessageStatus } from '../../src/domain/messages/states.ts';
import { newId } from '../../src/lib/ids.ts';
import { projectMessageReports, projectMessages } from '../../src/projection/messages.ts';
import type { ChatReport } from '../../src/providers/chat-provider.ts';
import { insertEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { acceptText, chatRow, chatTimeline, connect, TO } from '../store/chats.ts';
import { organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase(8);
const orgId = await organization(pool);
const from = (await connect(pool, orgId)).number;

const accept = () => acceptText(pool, orgId, from);

function reportOf(id: string, change: ChatReport['change'], fields: Partial<ChatReport> = {}): ChatReport {
  const failure = change === 'failed' ? { error: 'Twilio could not deliver it.', errorCode: '63024' } : {};
  return { change, messageId: id, providerMessageId: 'SM1', dedupeKey: `SM1 ${change}`, ...failure, ...fields };
}
const report = (...reports: ChatReport[]) => projectMessageReports(pool, 'twilio', reports);

describe('reports of a provider', () => {
  test('move a message and are recorded', async () => {
    const id = await accept();
    for (const change of ['sent', 'delivered', 'read'] as const) assert.equal(await report(reportOf(id, change)), true);
    assert.equal((await chatRow(pool, id)).status, 'read');
    assert.deepEqual(await chatTimeline(pool, id), ['queued', 'sent', 'delivered', 'read']);
  });

  test('of a failure have a reason; a later delivery clears it', async () => {
    const id = await accept();
    await report(reportOf(id, 'sent'), reportOf(id, 'failed'));
    const { status, error, error_code, look_in } = await chatRow(pool, id);
    assert.deepEqual([status, error, error_code, look_in], ['failed', 'Twilio could not deliver it.', '63024', null]);
    await report(reportOf(id, 'delivered'));
    const row = await chatRow(pool, id);
    assert.deepEqual([row.status, row.error, row.error_code], ['delivered', null, null]);
  });

  test('of a failure without a reason get a default reason', async () => {
    const id = await accept();
    await report({ change: 'failed', messageId: id, providerMessageId: 'SM1', dedupeKey: 'SM1 failed' });
    assert.match((await chatRow(pool, id)).error ?? '', /could not deliver/);
  });

  test('in sequence and concurrently repeated are recorded once', async () => {
    const id = await accept();
    for (let i = 0; i < 20; i++) await report(reportOf(id, 'delivered'));
    await Promise.all(Array.from({ length: 30 }, () => report(reportOf(id, 'delivered'), reportOf(id, 'sent'))));
    assert.deepEqual((await chatTimeline(pool, id)).sort(), ['delivered', 'queued', 'sent']);
  });

  test('of sent are recorded once, by our own record and the report in either order', async () => {
    const input = (id: string) => ({ id, provider: 'twilio' as const, provider_message_id: 'SM1', dedupe_key: 'call' });
    const [first, second] = [await accept(), await accept()];
    await projectMessages(pool, 'sent', [input(first)]);
    await report(reportOf(first, 'sent'));
    await report(reportOf(second, 'sent'));
    await projectMessages(pool, 'sent', [input(second)]);
    for (const id of [first, second]) {
      assert.deepEqual(await chatTimeline(pool, id), ['queued', 'sent']);
      const { provider, provider_message_id, look_in } = await chatRow(pool, id);
      assert.deepEqual([provider, provider_message_id, look_in], ['twilio', 'SM1', 2]);
    }
  });

  test('about unknown messages change nothing and return false', async () => {
    const id = newId('wa');
    assert.equal(await report(reportOf(id, 'sent')), false);
    assert.equal(await report(reportOf(id, 'sent', { messageId: undefined })), false);
    assert.equal(await report(), false);
    assert.equal(await report(reportOf(id, 'sent'), reportOf(await accept(), 'sent')), true);
  });

  test('our own failure has no effect after a report', async () => {
    const id = await accept();
    await report(reportOf(id, 'sent'));
    await projectMessages(pool, 'failed', [{ id, error: 'Given up.', dedupe_key: 'failed' }]);
    assert.equal((await chatRow(pool, id)).status, 'sent');
    assert.deepEqual(await chatTimeline(pool, id), ['queued', 'sent']);
  });

  test('in any order, with any repeats, lead to the same status', async () => {
    const changes = ['sent', 'delivered', 'read', 'failed'] as const;
    const reports = fc.array(fc.constantFrom(...changes), { minLength: 1, maxLength: 6 });
    const transitionOf = (change: ChatReport['change']) =>
      messageTransition('chatapp', change === 'failed' ? 'failureReported' : change);
    await fc.assert(
      fc.asyncProperty(reports, fc.boolean(), async (given, together) => {
        const id = await accept();
        if (together) await report(...given.map((change) => reportOf(id, change)));
        else for (const change of given) await report(reportOf(id, change));
        const expected = given.map(transitionOf).reduce<MessageStatus>(nextMessageStatus, 'queued');
        assert.equal((await chatRow(pool, id)).status, expected);
        assert.deepEqual((await chatTimeline(pool, id)).sort(), [...new Set(['queued', ...given])].sort());
      }),
      { numRuns: 60 },
    );
  });

  test('about the same messages in opposite orders do not deadlock', async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, accept));
    const all = ids.flatMap((id) => (['sent', 'delivered', 'read'] as const).map((change) => reportOf(id, change)));
    await Promise.all(Array.from({ length: 12 }, (_, i) => report(...(i % 2 ? all : all.toReversed()).slice(i % 5))));
    await report(...all);
    for (const id of ids) assert.equal((await chatRow(pool, id)).status, 'read');
  });
});

test('endpoints get events with the id and the fields of the message', async () => {
  const own = await organization(pool, 'chat.example');
  const number = await connect(pool, own);
  const endpoint = {
    id: newId('wh'),
    url: 'https://hooks.example/chat',
    events: ['chatapp.sent', 'chatapp.failed'],
    description: null,
  };
  await insertEndpoint(pool, own, endpoint, Buffer.from('sealed'));
  const id = await acceptText(pool, own, number.number);
  await report(reportOf(id, 'sent'), reportOf(id, 'sent'), reportOf(id, 'failed'), reportOf(id, 'delivered'));
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
