import { type TProperties, Type } from 'typebox';
import { BATCH_STATUSES } from '../../domain/email/batch.ts';
import { CHAT_STATUSES, CHAT_TYPES } from '../../domain/chat/chat.ts';
import { INBOUND_TYPES } from '../../domain/chat/inbound.ts';
import type { EventType } from '../../domain/event-types.ts';
import { SMS_STATUSES } from '../../domain/sms/sms.ts';
import { BOUNCE_REASONS, EMAIL_STATUSES } from '../../domain/email/email.ts';
import { DOMAIN_STATUSES } from '../../domain/senders/sender-domain.ts';
import { SUPPRESSION_ORIGINS } from '../../domain/email/suppression.ts';
import { Counts } from './batches.ts';
import { enumOf, eventTypes, objectOf, Timestamp } from './common.ts';
import { ByMachine, Tag } from './emails.ts';

/** Creates the payload of the event types with a prefix. Absent values are omitted; fields may be added later. */
function eventOf(prefix: string, name: string, data: TProperties) {
  return payloadOf(name, eventTypes(prefix), data);
}

function payloadOf(name: string, types: readonly EventType[], data: TProperties) {
  return objectOf(`${name}Event`, {
    id: Type.String({ description: 'The same for every attempt, and in `webhook-id`' }),
    type: enumOf(types, `${name}EventType`),
    created_at: Timestamp,
    data: objectOf(`${name}EventData`, data),
  });
}

const text = (description: string) => Type.Optional(Type.String({ description }));

/** The message that a user's reaction or reply refers to. */
const referredMessage = {
  messageId: text('Our id of that message, if it is known'),
  providerMessageId: Type.String(),
};

/** Schemas of webhook payloads by the prefix of the event type. */
export const EVENTS = {
  email: eventOf('email', 'Email', {
    emailId: Type.String(),
    batchId: text('Present for a member of a batch'),
    from: text('Absent if the record of the email was deleted'),
    to: Type.Optional(Type.Array(Type.String())),
    subject: text('Absent if the record of the email was deleted'),
    tags: Type.Optional(Type.Array(Tag)),
    status: enumOf(EMAIL_STATUSES, 'EmailStatus', 'The status of the email after the event'),
    scheduledAt: Type.Optional(
      Type.Unsafe<string>({
        ...Timestamp,
        description: 'Of `email.scheduled` and `email.rescheduled`: when it will be sent',
      }),
    ),
    recipient: text('The recipient that the event is about, in lower case; absent if unknown'),
    error: text('What the server or the provider reported'),
    bounceReason: Type.Optional(enumOf(BOUNCE_REASONS, 'BounceReason')),
    click: Type.Optional(Type.Object({ link: Type.String() })),
    machine: ByMachine,
    truncated: Type.Optional(
      Type.Array(Type.Enum(['to', 'tags', 'subject']), {
        description: 'The fields that were shortened or omitted to stay below 20 kB',
      }),
    ),
  }),
  batch: eventOf('batch', 'Batch', {
    batchId: Type.String(),
    total: Type.Integer(),
    status: enumOf(BATCH_STATUSES, 'BatchStatus'),
    counts: Counts,
    completedAt: Type.Optional(Timestamp),
  }),
  chatapp: eventOf('chatapp', 'ChatMessage', {
    messageId: Type.String(),
    from: Type.String({ description: 'E.164' }),
    to: Type.String({ description: 'E.164, or the id of a user' }),
    country: Type.String({ description: 'ISO 3166-1 alpha-2' }),
    type: enumOf(CHAT_TYPES, 'ChatMessageType'),
    status: enumOf(CHAT_STATUSES, 'ChatMessageStatus', 'The status of the message after the event'),
    scheduledAt: Type.Optional(Timestamp),
    error: text('Why it failed'),
    errorCode: text("The provider's error code"),
  }),
  chatappReceived: payloadOf('ChatReceived', ['chatapp.received'], {
    messageId: Type.String({ description: 'The id of the received message' }),
    from: Type.String({ description: 'The number of the user in E.164, or its id; send a reply to it' }),
    to: Type.String({ description: 'The number that received it, E.164' }),
    userId: text("WhatsApp's business-scoped id of the user"),
    username: text('The user name; users who have one may withhold their number'),
    name: text('The profile name of the user'),
    type: enumOf(INBOUND_TYPES, 'ChatReceivedType'),
    sentAt: Timestamp,
    text: text('The text, or the caption of a file'),
    media: Type.Optional(
      Type.Object({
        url: Type.String({ description: 'Signed link to the file, valid for seven days; needs no API key' }),
        contentType: Type.String(),
        filename: text('The file name that the user chose'),
      }),
    ),
    button: Type.Optional(
      Type.Object({ text: Type.String(), payload: text('The payload that you set for the button') }),
    ),
    location: Type.Optional(
      Type.Object({
        latitude: Type.Number(),
        longitude: Type.Number(),
        name: text('The name of the place'),
        address: text('The address of the place'),
      }),
    ),
    reaction: Type.Optional(
      Type.Object(
        { ...referredMessage, emoji: text('Absent if the user removed the reaction') },
        { title: 'ChatReaction' },
      ),
    ),
    context: Type.Optional(Type.Object(referredMessage, { description: 'The message to which it replies' })),
  }),
  smsReceived: payloadOf('SmsReceived', ['sms.received'], {
    from: Type.String({ description: 'The number of the sender, E.164' }),
    to: Type.String({ description: 'Your number that received it, E.164 or a short code' }),
    text: Type.String(),
  }),
  sms: eventOf('sms', 'Sms', {
    messageId: Type.String(),
    from: Type.String({ description: 'E.164, a short code, or a messaging service' }),
    to: Type.String({ description: 'E.164' }),
    country: Type.String({ description: 'ISO 3166-1 alpha-2' }),
    segments: Type.Integer(),
    status: enumOf(SMS_STATUSES, 'SmsStatus', 'The status of the message after the event'),
    scheduledAt: Type.Optional(Timestamp),
    error: text('Why it was not delivered'),
    errorCode: text("The provider's error code"),
  }),
  domain: eventOf('domain', 'Domain', {
    domainId: Type.String(),
    name: Type.String(),
    status: enumOf(DOMAIN_STATUSES, 'DomainStatus'),
  }),
  suppression: eventOf('suppression', 'Suppression', {
    suppressionId: Type.String(),
    email: Type.String({ description: 'In lower case' }),
    origin: enumOf(SUPPRESSION_ORIGINS, 'SuppressionOrigin'),
    bounceReason: Type.Optional(enumOf(BOUNCE_REASONS, 'BounceReason')),
    emailId: text('The email that caused it'),
  }),
  webhook: eventOf('webhook', 'Webhook', {
    webhookId: Type.String(),
    url: text('Of `webhook.disabled`: the URL of the endpoint that was disabled'),
    reason: text('Of `webhook.disabled`: why Sendwright disabled it'),
    failingSince: Type.Optional(Timestamp),
  }),
};
