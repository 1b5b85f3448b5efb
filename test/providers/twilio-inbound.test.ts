import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { InboundMessage } from '../../src/domain/chat/inbound.ts';
import { readTwilioInbound, twilioReceiver } from '../../src/providers/twilio/inbound.ts';

const SID = `SM${'0'.repeat(32)}`;
const PATH = `/2010-04-01/Accounts/AC${'1'.repeat(32)}/Messages/MM${'2'.repeat(32)}/Media/ME${'3'.repeat(32)}`;
/** https://www.twilio.com/docs/messaging/guides/webhook-request */
const FORM = {
  SmsMessageSid: SID,
  NumMedia: '0',
  ProfileName: 'Ada',
  MessageType: 'text',
  SmsStatus: 'received',
  WaId: '14165550123',
  ExternalUserId: 'CA.134912',
  From: 'whatsapp:+14165550123',
  To: 'whatsapp:+12025550142',
  MessageSid: SID,
  Body: 'Hi',
};

function read(fields: Record<string, string> = {}) {
  return readTwilioInbound(new URLSearchParams({ ...FORM, ...fields }));
}

function message(fields: Record<string, string> = {}): InboundMessage {
  const event = read(fields)?.events[0];
  assert.ok(event?.kind === 'message');
  return event;
}

const MESSAGE = {
  kind: 'message',
  providerMessageId: SID,
  user: { number: '+14165550123', userId: 'CA.134912', username: null, name: 'Ada' },
  sentAt: null,
  type: 'text',
  text: 'Hi',
  media: null,
  button: null,
  location: null,
  reaction: null,
  repliesTo: null,
};

const CONTENTS: readonly (readonly [string, Record<string, string>, Partial<InboundMessage>])[] = [
  ['a text', {}, {}],
  ['an answer to a message', { OriginalRepliedMessageSid: 'SM1' }, { repliesTo: 'SM1' }],
  [
    'an image with a caption',
    { NumMedia: '1', MediaUrl0: `https://api.twilio.com${PATH}`, MediaContentType0: 'image/jpeg', Body: 'Look' },
    { type: 'image', text: 'Look', media: { reference: PATH, contentType: 'image/jpeg', filename: null } },
  ],
  [
    'a document',
    { NumMedia: '1', MediaUrl0: `https://api.twilio.com${PATH}`, MediaContentType0: 'application/pdf', Body: '' },
    { type: 'document', text: null, media: { reference: PATH, contentType: 'application/pdf', filename: null } },
  ],
  [
    'a button',
    { MessageType: 'button', ButtonText: 'Yes', ButtonPayload: 'yes-1', Body: 'Yes', OriginalRepliedMessageSid: 'SM1' },
    { type: 'button', text: null, button: { text: 'Yes', payload: 'yes-1' }, repliesTo: 'SM1' },
  ],
  [
    'an entry of a list',
    { ListTitle: 'Express', ListId: 'l1', Body: 'Express' },
    { type: 'button', text: null, button: { text: 'Express', payload: 'l1' } },
  ],
  [
    'a location',
    { Latitude: '48.2', Longitude: '16.37', Label: 'Stephansdom', Address: '1010 Wien', Body: '' },
    {
      type: 'location',
      text: null,
      location: { latitude: 48.2, longitude: 16.37, name: 'Stephansdom', address: '1010 Wien' },
    },
  ],
  [
    'a reaction',
    { MessageType: 'reaction', Body: '👍', OriginalRepliedMessageSid: 'SM1' },
    { type: 'reaction', text: null, reaction: { emoji: '👍', providerMessageId: 'SM1' }, repliesTo: 'SM1' },
  ],
  ['without content', { Body: '' }, { type: 'unsupported', text: null }],
];

describe('a message of a user at Twilio', () => {
  for (const [what, fields, expected] of CONTENTS) {
    it(`is ${what}`, () => {
      const callback = read(fields);
      assert.ok(callback?.provider === 'twilio' && callback.number === '+12025550142');
      assert.deepEqual(callback.events, [{ ...MESSAGE, ...expected }]);
    });
  }

  it('comes from a user without a number', () => {
    const { user } = message({ From: 'whatsapp:CA.134912', WaId: '', ExternalUserId: '' });
    assert.deepEqual(user, { number: null, userId: 'CA.134912', username: null, name: 'Ada' });
  });

  it('comes from a Mexican number, which is dialled without the 1 of its WhatsApp id', () => {
    const { user } = message({ From: 'whatsapp:+5215512345678', WaId: '5215512345678' });
    assert.deepEqual(user, { ...MESSAGE.user, number: '+525512345678' });
  });

  it('never names a host for its file', () => {
    for (const url of ['https://evil.example/file', `https://api.twilio.com${PATH}/../x`, `${PATH}?redirect=x`, '']) {
      assert.equal(message({ MediaUrl0: url, MediaContentType0: 'image/png' }).media, null, url);
    }
    assert.equal(message({ MediaUrl0: `https://evil.example${PATH}` }).media?.reference, PATH);
  });

  it('is not recorded if it is an SMS, or has no id or no user', () => {
    for (const fields of [
      { To: '+12025550142' },
      { MessageSid: 'x' },
      { From: 'whatsapp:you', WaId: '', ExternalUserId: '' },
    ]) {
      assert.equal(read(fields), undefined);
    }
    assert.equal(twilioReceiver(new URLSearchParams({ To: '+12025550142' })), undefined);
  });
});
