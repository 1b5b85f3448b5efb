import { type TProperties, Type } from 'typebox';
import { BATCH_STATUSES } from '../../domain/email/batch.ts';
import { CHAT_STATUSES, CHAT_TYPES } from '../../domain/chat/chat.ts';
import { BOUNCE_REASONS, EMAIL_STATUSES } from '../../domain/email/email.ts';
import { DOMAIN_STATUSES } from '../../domain/senders/sender-domain.ts';
import { SUPPRESSION_ORIGINS } from '../../domain/email/suppression.ts';
import { Counts } from './batches.ts';
import { eventTypes, Timestamp } from './common.ts';
import { Tag } from './emails.ts';

/** The payload of the event types with a prefix. Absent values are omitted; fields may be added later. */
function eventOf(prefix: string, name: string, data: TProperties) {
  return Type.Object(
    {
      id: Type.String({ description: 'The same for every attempt, and in `webhook-id`' }),
      type: eventTypes(prefix, `${name}EventType`),
      created_at: Timestamp,
      data: Type.Object(data, { title: `${name}EventData` }),
    },
    { title: `${name}Event` },
  );
}

const text = (description: string) => Type.Optional(Type.String({ description }));

/** Webhook payloads by the prefix of the event type. */
export const EVENTS = {
  email: eventOf('email', 'Email', {
    emailId: Type.String(),
    batchId: text('When it was sent in a batch'),
    from: Type.String(),
    to: Type.Optional(Type.Array(Type.String())),
    subject: Type.String(),
    tags: Type.Optional(Type.Array(Tag)),
    status: Type.Enum([...EMAIL_STATUSES], { title: 'EmailStatus', description: 'That of the email after the event' }),
    scheduledAt: Type.Optional(
      Type.Unsafe<string>({
        ...Timestamp,
        description: 'Of `email.scheduled` and `email.rescheduled`: when it will be sent',
      }),
    ),
    recipient: text('Whom of its recipients the event is about, in lower case'),
    error: text('What the server or the provider said'),
    bounceReason: Type.Optional(Type.Enum([...BOUNCE_REASONS], { title: 'BounceReason' })),
    click: Type.Optional(Type.Object({ link: Type.String() })),
    truncated: Type.Optional(
      Type.Array(Type.Enum(['to', 'tags', 'subject']), {
        description: 'What is shortened or left out to stay below 20 kB',
      }),
    ),
  }),
  batch: eventOf('batch', 'Batch', {
    batchId: Type.String(),
    total: Type.Integer(),
    status: Type.Enum([...BATCH_STATUSES], { title: 'BatchStatus' }),
    counts: Counts,
    completedAt: Type.Optional(Timestamp),
  }),
  chatapp: eventOf('chatapp', 'ChatMessage', {
    messageId: Type.String(),
    from: Type.String({ description: 'E.164' }),
    to: Type.String({ description: 'E.164' }),
    country: Type.String({ description: 'ISO 3166-1 alpha-2' }),
    type: Type.Enum([...CHAT_TYPES], { title: 'ChatMessageType' }),
    status: Type.Enum([...CHAT_STATUSES], {
      title: 'ChatMessageStatus',
      description: 'That of the message after the event',
    }),
    error: text('Why it failed'),
    errorCode: text("The provider's own code for that"),
  }),
  domain: eventOf('domain', 'Domain', {
    domainId: Type.String(),
    name: Type.String(),
    status: Type.Enum([...DOMAIN_STATUSES], { title: 'DomainStatus' }),
  }),
  suppression: eventOf('suppression', 'Suppression', {
    suppressionId: Type.String(),
    email: Type.String({ description: 'In lower case' }),
    origin: Type.Enum([...SUPPRESSION_ORIGINS], { title: 'SuppressionOrigin' }),
    bounceReason: Type.Optional(Type.Enum([...BOUNCE_REASONS], { title: 'BounceReason' })),
    emailId: text('The email that led to it'),
  }),
  webhook: eventOf('webhook', 'Webhook', {
    webhookId: Type.String(),
    url: text('Of `webhook.disabled`: the URL of the endpoint that was disabled'),
    reason: text('Of `webhook.disabled`: why Sendwright disabled it'),
    failingSince: Type.Optional(Timestamp),
  }),
};
