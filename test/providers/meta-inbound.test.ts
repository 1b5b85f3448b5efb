import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { InboundEvent, InboundMessage } from '../../src/domain/chat/inbound.ts';
import { readMetaCallback } from '../../src/providers/meta/callbacks.ts';
import { readMetaInbound } from '../../src/providers/meta/inbound.ts';

const USER_ID = 'CA.13491208655302741918';
const METADATA = { display_phone_number: '12025550142', phone_number_id: '106540352242922' };

/** Posts have the shape of https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks. */
function post(value: object): Buffer {
  const changes = [{ field: 'messages', value: { messaging_product: 'whatsapp', metadata: METADATA, ...value } }];
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: '1', changes }] }));
}

const CONTACT = { profile: { name: 'Ada' }, wa_id: '14165550123', user_id: USER_ID };
const HEAD = { from: '14165550123', from_user_id: USER_ID, id: 'wamid.1', timestamp: '1773000000' };

function read(message: object, contacts: object[] = [CONTACT]): InboundEvent | undefined {
  const callbacks = readMetaInbound(post({ contacts, messages: [message] }));
  for (const callback of callbacks) {
    assert.ok(callback.provider === 'meta');
    assert.equal(callback.phoneNumberId, METADATA.phone_number_id);
  }
  return callbacks[0]?.events[0];
}

const NO_CONTENT = { text: null, media: null, button: null, location: null, reaction: null, repliesTo: null };
const MESSAGE = {
  kind: 'message',
  providerMessageId: 'wamid.1',
  user: { number: '+14165550123', userId: USER_ID, username: null, name: 'Ada' },
  sentAt: 1_773_000_000_000,
  ...NO_CONTENT,
};

const FILE = { mime_type: 'image/jpeg', sha256: 'abc', id: '2226', url: 'https://lookaside.example/x' };
const CONTENTS: readonly (readonly [string, object, Partial<InboundMessage>])[] = [
  ['a text', { type: 'text', text: { body: 'Hi' } }, { type: 'text', text: 'Hi' }],
  [
    'an answer to a message',
    { type: 'text', text: { body: 'Yes' }, context: { from: '12025550142', id: 'wamid.ours' } },
    { type: 'text', text: 'Yes', repliesTo: 'wamid.ours' },
  ],
  [
    'a forwarded text',
    { type: 'text', text: { body: 'Hi' }, context: { forwarded: true } },
    { type: 'text', text: 'Hi' },
  ],
  [
    'an image with a caption',
    { type: 'image', image: { ...FILE, caption: 'Look' } },
    { type: 'image', text: 'Look', media: { reference: '2226', contentType: 'image/jpeg', filename: null } },
  ],
  [
    'a voice message',
    { type: 'audio', audio: { id: '7', mime_type: 'audio/ogg; codecs=opus', voice: true } },
    { type: 'audio', media: { reference: '7', contentType: 'audio/ogg', filename: null } },
  ],
  [
    'a document',
    { type: 'document', document: { id: '8', mime_type: 'application/pdf', filename: 'order.pdf' } },
    { type: 'document', media: { reference: '8', contentType: 'application/pdf', filename: 'order.pdf' } },
  ],
  [
    'a quick reply of a template',
    { type: 'button', button: { payload: 'yes-1', text: 'Yes' }, context: { id: 'wamid.ours' } },
    { type: 'button', button: { text: 'Yes', payload: 'yes-1' }, repliesTo: 'wamid.ours' },
  ],
  [
    'a button',
    { type: 'interactive', interactive: { type: 'button_reply', button_reply: { id: 'b1', title: 'Change' } } },
    { type: 'button', button: { text: 'Change', payload: 'b1' } },
  ],
  [
    'an entry of a list',
    {
      type: 'interactive',
      interactive: { type: 'list_reply', list_reply: { id: 'l1', title: 'Express', description: '1 day' } },
    },
    { type: 'button', button: { text: 'Express', payload: 'l1' } },
  ],
  [
    'a location',
    { type: 'location', location: { latitude: 48.2, longitude: 16.37, name: 'Stephansdom', address: '1010 Wien' } },
    { type: 'location', location: { latitude: 48.2, longitude: 16.37, name: 'Stephansdom', address: '1010 Wien' } },
  ],
  [
    'a reaction',
    { type: 'reaction', reaction: { message_id: 'wamid.ours', emoji: '👍' } },
    { type: 'reaction', reaction: { emoji: '👍', providerMessageId: 'wamid.ours' } },
  ],
  [
    'a reaction that was taken back',
    { type: 'reaction', reaction: { message_id: 'wamid.ours', emoji: '' } },
    { type: 'reaction', reaction: { emoji: null, providerMessageId: 'wamid.ours' } },
  ],
  ['contacts', { type: 'contacts', contacts: [{ name: {} }] }, { type: 'unsupported' }],
  ['what Meta does not pass on', { type: 'unsupported', errors: [{ code: 131051 }] }, { type: 'unsupported' }],
  ['a file with an id that is none', { type: 'image', image: { id: '../me?x=' } }, { type: 'unsupported' }],
  ['a location without coordinates', { type: 'location', location: { latitude: '48' } }, { type: 'unsupported' }],
  ['a type that is a property of every object', { type: 'constructor' }, { type: 'unsupported' }],
  [
    'text with characters that Postgres or a payload cannot hold',
    { type: 'text', text: { body: 'a\u0000b\u0007\ud800c\nd' } },
    { type: 'text', text: 'ab\ufffdc\nd' },
  ],
];

describe('a message of a user at Meta', () => {
  for (const [what, content, expected] of CONTENTS) {
    it(`is ${what}`, () => assert.deepEqual(read({ ...HEAD, ...content }), { ...MESSAGE, ...expected }));
  }

  const TEXT = { type: 'text', text: { body: 'Hi' } };
  const withoutNumber = { ...HEAD, from: undefined };
  const NAMELESS = { userId: USER_ID, number: null, username: 'ada.l', name: 'Ada' };

  it('comes from a user without a number', () => {
    const contact = { profile: { name: 'Ada', username: 'ada.l' }, user_id: USER_ID };
    assert.deepEqual((read({ ...withoutNumber, ...TEXT }, [contact]) as InboundMessage).user, NAMELESS);
    const inPlaceOfNumber = { ...withoutNumber, from_user_id: undefined, from: USER_ID, ...TEXT };
    const other = { ...contact, user_id: undefined, wa_id: USER_ID };
    assert.deepEqual((read(inPlaceOfNumber, [other]) as InboundMessage).user, NAMELESS);
  });

  it('comes from a user without an id, as before April 2026', () => {
    const message = read({ ...HEAD, from_user_id: undefined, ...TEXT }, [
      { profile: { name: 'Ada' }, wa_id: HEAD.from },
    ]);
    assert.deepEqual((message as InboundMessage).user, { ...MESSAGE.user, userId: null });
  });

  it('comes from a Mexican number, which is dialled without the 1 of its WhatsApp id', () => {
    const id = '5215512345678';
    const message = read({ ...HEAD, from: id, ...TEXT }, [{ ...CONTACT, wa_id: id }]) as InboundMessage;
    assert.deepEqual(message.user, { ...MESSAGE.user, number: '+525512345678' });
  });

  it('gets the profile of its own contact among several', () => {
    const other = { profile: { name: 'Eve' }, wa_id: '14165559999', user_id: 'CA.9' };
    assert.equal((read({ ...HEAD, ...TEXT }, [other, CONTACT]) as InboundMessage).user.name, 'Ada');
    assert.equal((read({ ...withoutNumber, ...TEXT }, [other, CONTACT]) as InboundMessage).user.name, 'Ada');
  });

  it('is not recorded without an id or a user', () => {
    for (const message of [
      { ...HEAD, id: undefined },
      { ...HEAD, id: 5 },
      { id: 'wamid.1', timestamp: '1' },
    ]) {
      assert.equal(read({ ...message, ...TEXT }, []), undefined);
    }
    for (const body of ['', '[]', '{"entry":[{"changes":[{"field":"messages","value":{"messages":5}}]}]}']) {
      assert.deepEqual(readMetaInbound(Buffer.from(body)), []);
    }
  });

  it('may share a post with reports', () => {
    const status = { id: 'wamid.2', status: 'read', biz_opaque_callback_data: 'wa_1' };
    const body = post({ contacts: [CONTACT], messages: [{ ...HEAD, ...TEXT }], statuses: [status] });
    assert.equal(readMetaInbound(body)[0]?.events.length, 1);
    assert.equal(readMetaCallback(body).length, 1);
  });
});

describe('a system message of Meta', () => {
  const AFTER = { number: null, userId: 'CA.2' };

  it('reports another id of a user', () => {
    const system = { type: 'user_changed_user_id', body: 'Ada changed from CA.1 to CA.2', user_id: 'CA.2' };
    const head = { id: 'wamid.1', timestamp: '1', type: 'system' };
    for (const message of [
      { ...head, system },
      { ...head, from_user_id: 'CA.2', system: { ...system, previous_user_id: 'CA.1', body: '' } },
      { ...head, from_user_id: 'CA.1', system: { ...system, body: undefined } },
    ]) {
      assert.deepEqual(read(message), { kind: 'userChange', before: { number: null, userId: 'CA.1' }, after: AFTER });
    }
  });

  it('reports another number of a user', () => {
    const system = {
      type: 'user_changed_number',
      body: 'Ada changed from 1 to 2',
      wa_id: '14165550999',
      user_id: 'CA.2',
    };
    assert.deepEqual(read({ ...HEAD, from_user_id: 'CA.1', type: 'system', system }), {
      kind: 'userChange',
      before: { number: '+14165550123', userId: 'CA.1' },
      after: { number: '+14165550999', userId: 'CA.2' },
    });
  });

  it('of another type, or without both ids, changes nothing', () => {
    for (const system of [{ type: 'user_identity_changed' }, { type: 'user_changed_user_id' }, undefined]) {
      assert.equal(read({ ...HEAD, type: 'system', system }), undefined);
    }
  });
});
