import { Type } from 'typebox';
import { SMS_TEXT_LENGTH } from '../../domain/limits.ts';
import { SMS_ENCODINGS } from '../../domain/sms/segments.ts';
import { SMS_STATUSES } from '../../domain/sms/sms.ts';
import { closedObject, enumOf, nullable, objectOf, optional, Timestamp, timelineEntry } from './common.ts';
import { Tag } from './emails.ts';
import { messageFields, messageFilters } from './messages.ts';

const ID = 'sms_01kajce1x8m4n6p0r2t5v7w9yz';
const PHONE = '+14165550123';

export const SendSmsBody = closedObject('SendSmsRequest', 'One SMS', {
  to: Type.String({
    'x-rule': 'recipient',
    description: 'The recipient, in international form',
    examples: [PHONE, '+1 (416) 555-0123'],
  }),
  text: Type.String({
    minLength: 1,
    maxLength: SMS_TEXT_LENGTH,
    'x-rule': 'body',
    description: 'The message; no character is replaced',
    examples: ['Your code is 123456.'],
  }),
  from: optional('string', {
    'x-rule': 'sms-sender',
    description:
      "A connected number, short code or messaging service; without it, one that serves the recipient's country",
    examples: ['+12025550142'],
  }),
  ...messageFields,
});

export const SmsParams = Type.Object({ id: Type.String({ examples: [ID] }) });

const head = {
  id: Type.String({ examples: [ID] }),
  status: enumOf(SMS_STATUSES, 'SmsStatus'),
  from: Type.String({ description: 'E.164, a short code, or a messaging service', examples: ['+12025550142'] }),
  to: Type.String({ description: 'E.164', examples: [PHONE] }),
  country: Type.String({ description: 'The country of the recipient, ISO 3166-1 alpha-2', examples: ['CA'] }),
  segments: Type.Integer({ description: 'The number of segments, by which operators charge', examples: [1] }),
  encoding: enumOf(
    SMS_ENCODINGS,
    'SmsEncoding',
    '`gsm7`: 160 characters in one segment, 153 in each of several. `ucs2`: 70 and 67',
  ),
  created_at: Timestamp,
  scheduled_at: nullable(Timestamp),
};

export const AcceptedSms = objectOf('AcceptedSms', { ...head, status: Type.Enum(['queued', 'scheduled']) });

const summary = {
  ...head,
  tags: Type.Array(Tag),
  error: nullable(Type.String(), 'Why it was not delivered'),
  last_event_at: Timestamp,
};

export const SmsSummary = objectOf('SmsSummary', summary);

export const SmsBody = objectOf('Sms', {
  ...summary,
  text: nullable(Type.String(), 'Null once it is erased'),
  events: Type.Array(timelineEntry('sms', 'Sms'), { description: 'Oldest first' }),
});

export const SmsFilters = messageFilters(
  enumOf(SMS_STATUSES, 'SmsStatus', 'Only messages with this status', 'undelivered'),
  {
    'x-rule': 'phone-in-query',
    description: 'Only messages to this number, in international form',
    examples: [PHONE],
  },
);

export const SenderBody = objectOf('SmsSender', {
  id: Type.String({ examples: ['snd_01kajce5q2w4e6r8t0y1u3i5op'] }),
  number: nullable(Type.String(), 'E.164, or a short code; null for a messaging service'),
  messaging_service_sid: nullable(Type.String(), 'The messaging service at Twilio'),
  countries: Type.Array(Type.String(), {
    description: 'Countries of recipients that it serves, ISO 3166-1 alpha-2; empty for all',
  }),
  created_at: Timestamp,
});
