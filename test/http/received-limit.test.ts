import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { addSender } from '../../src/accounts/sms-senders.ts';
import { makeCallbackLimits } from '../../src/intake/callback-limits.ts';
import { callbacksDropped } from '../../src/telemetry/topics.ts';
import { connect } from '../store/chats.ts';
import { metaRequest, twilioRequest } from './provider-callbacks.ts';
import { useService } from './service.ts';

const PUBLIC_URL = 'https://mail.example/base';
const INBOUND = '/callbacks/twilio/inbound';
const LIMIT = 3;
const SENT = 5;

const callbackLimits = makeCallbackLimits({ messagesPerDay: LIMIT });
const service = await useService({ publicUrl: PUBLIC_URL, callbackLimits });
const ours = await service.organization();
const webhook = { url: 'https://example.com/hook', events: ['chatapp.received', 'sms.received'] };
assert.equal((await ours.call('POST', '/v1/webhooks', { json: webhook })).status, 201);

let dropped = 0;
callbacksDropped.listen(({ reason, count: more }) => (dropped += reason === 'received' ? more : 0));
beforeEach(() => (dropped = 0));

let count = 0;
const phoneOf = (index: number): string => `+1416555${String(1_000 + index)}`;

async function postTwilio(fields: Record<string, string>): Promise<void> {
  const form = { MessageSid: `SM${String(++count).padStart(32, '0')}`, SmsStatus: 'received', ...fields };
  assert.equal((await service.call('POST', INBOUND, twilioRequest(PUBLIC_URL + INBOUND, form))).status, 200);
}

async function countOf(sql: string, ...values: string[]): Promise<number> {
  const { rows } = await service.pool.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${sql}`, values);
  return rows[0]?.count ?? 0;
}
const eventsTo = (number: string): Promise<number> => countOf(`webhook_events WHERE data->>'to' = $1`, number);

describe('messages of users beyond the limit of their number', () => {
  it('are acknowledged but not kept on WhatsApp by Twilio, and open the window of their user', async () => {
    const [{ number }, { number: other }] = [
      await connect(service.pool, ours.id),
      await connect(service.pool, ours.id),
    ];
    for (let i = 0; i < SENT; i++)
      await postTwilio({ From: `whatsapp:${phoneOf(i)}`, To: `whatsapp:${number}`, Body: 'Hi.' });
    assert.equal(await countOf('chat_inbound WHERE number = $1', number), LIMIT);
    assert.equal(await eventsTo(number), LIMIT);
    assert.equal(await countOf('chat_contacts WHERE number = $1 AND last_inbound_at IS NOT NULL', number), SENT);
    assert.equal(await countOf('provider_callbacks'), 0);
    assert.equal(dropped, SENT - LIMIT);
    await postTwilio({ From: `whatsapp:${phoneOf(0)}`, To: `whatsapp:${other}`, Body: 'Hi.' });
    assert.equal(await eventsTo(other), 1);
  });

  it('are acknowledged but not kept on WhatsApp by Meta, where a repeated callback counts once', async () => {
    const { id, number } = await connect(service.pool, ours.id, 'meta');
    const { rows } = await service.pool.query<{ phone: string }>(
      'SELECT phone_number_id AS phone FROM chat_numbers WHERE id = $1',
      [id],
    );
    for (let i = 0; i < SENT; i++) {
      const message = {
        from: '14165550123',
        id: `wamid.${i}`,
        timestamp: '1773000000',
        type: 'text',
        text: { body: 'Hi.' },
      };
      const value = { metadata: { phone_number_id: rows[0]?.phone }, messages: [message] };
      const body = JSON.stringify({ entry: [{ changes: [{ field: 'messages', value }] }] });
      for (let copy = 0; copy < 2; copy++) {
        assert.equal((await service.call('POST', '/callbacks/meta', metaRequest(body))).status, 200);
      }
    }
    assert.equal(await countOf('chat_inbound WHERE number = $1', number), LIMIT);
    assert.equal(await eventsTo(number), LIMIT);
  });

  it('are acknowledged but not kept by SMS, where STOP still opts out', async () => {
    const number = '+12025550142';
    await addSender(service.pool, ours.id, number, []);
    for (let i = 0; i < SENT; i++) await postTwilio({ From: phoneOf(i), To: number, Body: 'Hi.' });
    const kept = await countOf('sms_received');
    for (const text of ['STOP', 'STOP']) await postTwilio({ From: phoneOf(0), To: number, Body: text });
    assert.equal(await eventsTo(number), LIMIT);
    assert.equal(await countOf('sms_received'), kept);
    assert.equal(await countOf('sms_opt_outs WHERE recipient = $1', phoneOf(0)), 1);
    assert.equal(dropped, SENT - LIMIT + 2);
  });
});

it('messages of users are not limited by default', () => {
  const { messages } = makeCallbackLimits();
  for (let i = 0; i < 10_000; i++) assert.equal(messages.take('+12025550142'), 0);
});
