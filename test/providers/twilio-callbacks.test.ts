import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import { isTwilioSignature, readTwilioCallback } from '../../src/providers/twilio/callbacks.ts';

const TOKEN = 'auth-token';
const URL = 'https://mail.example.com/callbacks/twilio?m=wa_1';
const PARAMS = {
  MessageSid: 'SM1',
  MessageStatus: 'delivered',
  AccountSid: 'AC1',
  To: 'whatsapp:+4915112345678',
  Body: 'ü & 5\n',
};

function sign(token: string, url: string, params: Record<string, string>): string {
  const fields = Object.keys(params).sort();
  return createHmac('sha1', token)
    .update(url + fields.map((name) => name + (params[name] ?? '')).join(''))
    .digest('base64');
}

describe('a signature', () => {
  const form = (fields: Record<string, string> = {}) => new URLSearchParams({ ...PARAMS, ...fields });
  const good = sign(TOKEN, URL, PARAMS);

  test('with the account’s token over URL and fields is valid, in any order of the fields', () => {
    assert.equal(isTwilioSignature(TOKEN, URL, form(), good), true);
    assert.equal(isTwilioSignature(TOKEN, URL, new URLSearchParams(Object.entries(PARAMS).reverse()), good), true);
  });

  test('as Twilio’s documentation computes one', () => {
    const params = new URLSearchParams({
      CallSid: 'CA1234567890ABCDE',
      Caller: '+14158675309',
      Digits: '1234',
      From: '+14158675309',
      To: '+18005551212',
    });
    const url = 'https://mycompany.com/myapp.php?foo=1&bar=2';
    assert.equal(isTwilioSignature('12345', url, params, 'RSOYDt4T1cUTdK1PDd93/VVr8B8='), true);
  });

  test('holds for the address with its standard port, and for another port', () => {
    const withPort = URL.replace('.com/', '.com:443/');
    assert.equal(isTwilioSignature(TOKEN, URL, form(), sign(TOKEN, withPort, PARAMS)), true);
    const local = 'http://127.0.0.1:3000/callbacks/twilio?m=wa_1';
    assert.equal(isTwilioSignature(TOKEN, local, form(), sign(TOKEN, local, PARAMS)), true);
  });

  for (const [name, wrong] of Object.entries({
    'of another token': () => isTwilioSignature('other', URL, form(), good),
    'without a token': () => isTwilioSignature('', URL, form(), sign('', URL, PARAMS)),
    'over another field’s value': () => isTwilioSignature(TOKEN, URL, form({ MessageStatus: 'failed' }), good),
    'with a field more': () => isTwilioSignature(TOKEN, URL, form({ ErrorCode: '1' }), good),
    'with a field less': () => isTwilioSignature(TOKEN, URL, new URLSearchParams({ MessageSid: 'SM1' }), good),
    'for another message': () => isTwilioSignature(TOKEN, URL.replace('wa_1', 'wa_2'), form(), good),
    'for http': () => isTwilioSignature(TOKEN, URL.replace('https', 'http'), form(), good),
    'over the address’s fragment': () => isTwilioSignature(TOKEN, URL, form(), sign(TOKEN, `${URL}#rc=5`, PARAMS)),
    'that is cut off': () => isTwilioSignature(TOKEN, URL, form(), good.slice(0, -1)),
    'that is missing': () => isTwilioSignature(TOKEN, URL, form(), undefined),
  })) {
    test(`${name} is wrong`, () => {
      assert.equal(wrong(), false);
    });
  }

  test('covers fields that are named like properties of objects', () => {
    const params = { ...PARAMS, constructor: 'x' };
    const fields = new URLSearchParams([...Object.entries(params), ['__proto__', 'y']]);
    const signature = createHmac('sha1', TOKEN)
      .update(
        URL +
          [...fields]
            .sort(([a], [b]) => (a < b ? -1 : 1))
            .flat()
            .join(''),
      )
      .digest('base64');
    assert.equal(isTwilioSignature(TOKEN, URL, fields, signature), true);
    fields.set('__proto__', 'z');
    assert.equal(isTwilioSignature(TOKEN, URL, fields, signature), false);
  });
});

describe('a callback', () => {
  const read = (fields: Record<string, string>) => readTwilioCallback(new URLSearchParams(fields), 'wa_1');
  const about = { messageId: 'wa_1', providerMessageId: 'SM1' };

  for (const [status, change] of Object.entries({
    accepted: 'sent',
    scheduled: 'sent',
    queued: 'sent',
    sending: 'sent',
    sent: 'sent',
    delivered: 'delivered',
    read: 'read',
  })) {
    test(`${status}: ${change}`, () => {
      const expected = { ...about, change, dedupeKey: `SM1 ${change}` };
      assert.deepEqual(read({ MessageSid: 'SM1', MessageStatus: status }), expected);
      assert.deepEqual(read({ SmsSid: 'SM1', SmsStatus: status }), expected);
    });
  }

  for (const [fields, error, errorCode] of [
    [
      { MessageStatus: 'failed', ErrorCode: '63016', ErrorMessage: 'Outside of the window.' },
      'Twilio could not deliver it: Outside of the window (error 63016).',
      '63016',
    ],
    [
      { MessageStatus: 'undelivered', ErrorCode: '63024', ChannelStatusMessage: 'Not reachable' },
      'Twilio could not deliver it: Not reachable (error 63024).',
      '63024',
    ],
    [
      { MessageStatus: 'undelivered', ErrorCode: '63003' },
      'Twilio could not deliver it: the recipient has no account with the chat app (error 63003).',
      '63003',
    ],
    [{ MessageStatus: 'failed', ErrorCode: 'x', ErrorMessage: 'a\0b' }, 'Twilio could not deliver it.', undefined],
    [{ MessageStatus: 'canceled' }, 'Twilio could not deliver it: it was canceled at Twilio.', undefined],
  ] as const) {
    test(JSON.stringify(fields), () => {
      assert.deepEqual(read({ MessageSid: 'SM1', ...fields }), {
        ...about,
        change: 'failed',
        dedupeKey: 'SM1 failed',
        error,
        ...(errorCode !== undefined && { errorCode }),
      });
    });
  }

  test('nothing without a message or with a status that is not known', () => {
    for (const fields of [
      {},
      { MessageSid: 'SM1' },
      { MessageStatus: 'sent' },
      { MessageSid: '', MessageStatus: 'sent' },
      { MessageSid: 'S\0', MessageStatus: 'sent' },
      { MessageSid: 'SM1', MessageStatus: 'received' },
      { MessageSid: 'SM1', MessageStatus: 'toString' },
    ])
      assert.equal(read(fields as Record<string, string>), undefined);
  });

  test('nothing of ours where our id is missing, but which message it is', () => {
    const report = readTwilioCallback(new URLSearchParams({ MessageSid: 'SM1', MessageStatus: 'sent' }), undefined);
    assert.deepEqual([report?.messageId, report?.providerMessageId], [undefined, 'SM1']);
  });
});
