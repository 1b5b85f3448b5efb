import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readInboundSms, readTwilioCallback } from '../../src/providers/twilio/callbacks.ts';
import { twilioSms } from '../../src/providers/twilio/sms.ts';
import { ACCOUNT, chat, PUBLIC_URL } from './chat.ts';
import { answering, httpServer, recordingServer } from './servers.ts';

const FROM = '+12025550142';
const SERVICE = `MG${'0'.repeat(32)}`;

function sms(from = FROM) {
  return chat({ text: 'Größe [5] 😀' }, { from, id: `sms_${'0'.repeat(26)}` });
}

function smsAt(baseUrl: string, publicUrl: string | null = PUBLIC_URL) {
  return twilioSms({ ...ACCOUNT, baseUrl, timeoutSeconds: 30, publicUrl });
}

/** A message as Twilio lists it. */
function listed(sid: string, fields: object = {}) {
  return {
    sid,
    direction: 'outbound-api',
    date_created: new Date().toUTCString(),
    body: 'Größe [5] 😀',
    messaging_service_sid: null,
    ...fields,
  };
}

describe('what Twilio is sent for an SMS', { concurrency: true }, () => {
  for (const [name, from, sender] of [
    ['from a number', FROM, { From: FROM }],
    ['from a short code', '12345', { From: '12345' }],
    ['from a messaging service', SERVICE, { MessagingServiceSid: SERVICE }],
  ] as const) {
    test(`${name}: the text as it is, and our id in the callback`, async (t) => {
      const { url, requests } = await recordingServer(t, { status: 201, body: { sid: 'SM1', status: 'queued' } });
      const message = sms(from);
      assert.deepEqual(await smsAt(url).send(message), { kind: 'sent', messageId: 'SM1' });
      const [form = ''] = requests.map(({ body }) => body.toString());
      assert.deepEqual(Object.fromEntries(new URLSearchParams(form)), {
        To: message.to,
        ...sender,
        Body: 'Größe [5] 😀',
        SmartEncoded: 'false',
        StatusCallback: `${PUBLIC_URL}/callbacks/twilio?m=${message.id}#rc=5&rp=all`,
      });
    });
  }
});

for (const [code, status, kind] of [
  [21610, 400, 'refused'],
  [21211, 400, 'refused'],
  [21611, 429, 'busy'],
  [21606, 400, 'account'],
  [21703, 400, 'account'],
] as const) {
  test(`an SMS that Twilio answers with error ${code} is ${kind}`, async (t) => {
    const url = await httpServer(t, answering({ status, body: { code, message: 'No.', status } }));
    const outcome = await smsAt(url).send(sms());
    assert.equal(outcome.kind, kind);
    assert.equal('code' in outcome && outcome.code, String(code));
  });
}

describe('an SMS that Twilio may have', { concurrency: true }, () => {
  test('is found by its text, sender and recipient', async (t) => {
    const queries: URLSearchParams[] = [];
    const url = await httpServer(t, (request, response) => {
      queries.push(new URL(request.url ?? '', 'http://twilio').searchParams);
      const others = [{ body: 'x' }, { body: null }, { direction: 'inbound' }];
      const messages = [listed('SM4'), ...others.map((fields, i) => listed(`SM${i + 1}`, fields))];
      response.end(JSON.stringify({ messages, next_page_uri: null }));
    });
    const message = sms();
    assert.equal(await smsAt(url).find?.(message, { fromMs: Date.now(), untilMs: Infinity }), 'SM4');
    assert.deepEqual([queries[0]?.get('From'), queries[0]?.get('To')], [FROM, message.to]);
  });

  test('of a messaging service is found among those of all senders', async (t) => {
    const period = { fromMs: Date.now(), untilMs: Infinity };
    const messages = [listed('SM1', { messaging_service_sid: SERVICE }), listed('SM2')];
    const url = await httpServer(t, answering({ body: { messages, next_page_uri: null } }));
    assert.equal(await smsAt(url).find?.(sms(SERVICE), period), 'SM1');
  });

  test('is reported with the status of its record', async (t) => {
    const record = { sid: 'SM1', status: 'undelivered', error_code: 30003, error_message: null };
    const report = await smsAt(await httpServer(t, answering({ body: record }))).report?.(sms(), 'SM1');
    assert.deepEqual(report, {
      change: 'undelivered',
      messageId: sms().id,
      providerMessageId: 'SM1',
      dedupeKey: 'SM1 undelivered',
      error: 'Twilio could not deliver it: the phone is switched off or out of reach (error 30003).',
      errorCode: '30003',
    });
  });
});

describe('a callback about an SMS', () => {
  const read = (fields: Record<string, string>) =>
    readTwilioCallback(new URLSearchParams({ MessageSid: 'SM1', To: '+14165550123', ...fields }), sms().id);

  for (const [status, change] of Object.entries({
    queued: 'sent',
    sent: 'sent',
    delivered: 'delivered',
    undelivered: 'undelivered',
    failed: 'failed',
  })) {
    test(`${status}: ${change}`, () => assert.equal(read({ MessageStatus: status })?.change, change));
  }

  test('states the sender unless a messaging service chose it', () => {
    const fields = { MessageStatus: 'sent', From: FROM };
    assert.deepEqual(read(fields)?.endpoints, { from: FROM, to: '+14165550123' });
    assert.deepEqual(read({ ...fields, MessagingServiceSid: SERVICE })?.endpoints, { to: '+14165550123' });
  });
});

describe('an inbound SMS', () => {
  const fields = { MessageSid: 'SM1', From: '+14165550123', To: FROM, Body: 'Stop' };
  const sender = { to: FROM, messagingServiceSid: null };
  const parsed = { providerMessageId: 'SM1', from: '+14165550123', ...sender, text: 'Stop', optOutType: null };

  for (const [name, given, expected] of [
    ['to a number', fields, parsed],
    [
      'to a messaging service',
      { ...fields, MessagingServiceSid: SERVICE },
      { ...parsed, messagingServiceSid: SERVICE },
    ],
    ['with a keyword of the service', { ...fields, OptOutType: 'STOP' }, { ...parsed, optOutType: 'STOP' }],
    ['without a text', { ...fields, Body: '' }, { ...parsed, text: '' }],
    ['with a NUL, which Postgres cannot store', { ...fields, Body: 'a\0b' }, { ...parsed, text: 'ab' }],
    ['without an id is none', { ...fields, MessageSid: '' }, undefined],
    ['of a chat app is none', { ...fields, From: 'whatsapp:+14165550123' }, undefined],
  ] as const) {
    test(name, () => assert.deepEqual(readInboundSms(new URLSearchParams(given)), expected));
  }
});
