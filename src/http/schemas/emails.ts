import { type Static, Type } from 'typebox';
import { BOUNCE_REASONS, EMAIL_STATUSES } from '../../domain/email/email.ts';
import { BODY_LENGTH, HEADERS, RECIPIENTS_PER_FIELD, SUBJECT_LENGTH, TAG_LENGTH, TAGS } from '../../domain/limits.ts';
import { AttachmentMetadata, AttachmentsField } from './attachments.ts';
import { closedObject, enumOf, nullable, objectOf, optional, ruledObject, timelineEntry, Timestamp } from './common.ts';

/** True if an open or click was probably automatic. */
export const ByMachine = Type.Optional(
  Type.Boolean({
    description: 'Of `email.opened` and `email.clicked`: true if a program caused it, not a person; the status stays',
  }),
);

/** One or several addresses. The rule applies to both types, so that an error names the invalid address. */
function addresses(description: string, minItems: 0 | 1) {
  const rule = { 'x-rule': 'mailbox' };
  return {
    description,
    items: { type: 'string', ...rule },
    minItems,
    maxItems: RECIPIENTS_PER_FIELD,
    examples: ['Ada <ada@example.com>', ['ada@example.com', 'grace@example.com']],
    ...rule,
  };
}

function optionalAddresses(description: string, minItems: 0 | 1) {
  return optional<string | string[]>(['string', 'array'], addresses(description, minItems));
}

function optionalBody(description: string) {
  return optional('string', { maxLength: BODY_LENGTH, 'x-rule': 'body', description });
}

const scheduledAt = {
  'x-rule': 'instant',
  description: 'ISO 8601 instant with an offset, in the future, at most 30 days ahead',
  examples: ['2026-03-03T09:30:00Z', '2026-03-03T10:30:00+01:00'],
};

const tagPart = (description: string) =>
  Type.String({ minLength: 1, maxLength: TAG_LENGTH, pattern: '^[A-Za-z0-9_-]*$', description });

/** A tag of a message, in requests and responses. */
export const Tag = closedObject('Tag', null, {
  name: tagPart('Unique within the message'),
  value: tagPart('The value of the tag'),
});

export const tagsField = optional<Static<typeof Tag>[]>('array', {
  maxItems: TAGS,
  'x-rule': 'unique-tags',
  description: 'Labels for filters and counts; not sent to recipients',
  items: Tag,
});

export const scheduledAtField = optional('string', scheduledAt);

/** The fields of single emails and batch members. */
const emailFields = {
  from: Type.String({
    'x-rule': 'mailbox',
    description: 'The sender; its domain must be registered and verified',
    examples: ['Example <hello@example.com>'],
  }),
  to: Type.Unsafe<string | string[]>({ type: ['string', 'array'], ...addresses('1 to 50 recipients', 1) }),
  cc: optionalAddresses('1 to 50 recipients of a copy', 1),
  bcc: optionalAddresses('1 to 50 recipients whom the others do not see', 1),
  reply_to: optionalAddresses('Where replies go', 0),
  subject: Type.String({
    minLength: 1,
    maxLength: SUBJECT_LENGTH,
    'x-rule': 'one-line',
    examples: ['Welcome to Example'],
  }),
  html: optionalBody('HTML body; html, text or both'),
  text: optionalBody('Plain text body; html, text or both'),
  marketing: optional<boolean>('boolean', { description: 'Default false' }),
  tags: tagsField,
  headers: optional<Record<string, string>>('object', {
    additionalProperties: { type: 'string' },
    'x-rule': 'headers',
    description: `Up to ${HEADERS} custom headers. Control headers of email providers, such as X-PM-*, are refused.`,
    examples: [{ 'X-Order': '4711' }],
  }),
  scheduled_at: scheduledAtField,
};

export const SendEmailBody = ruledObject('some-body', 'SendEmailRequest', 'One email', {
  ...emailFields,
  attachments: AttachmentsField,
});

export const BatchMember = ruledObject('some-body', 'BatchEmail', 'One email', {
  ...emailFields,
  attachments: optional<never[]>('array', { maxItems: 0, description: 'Files are not accepted in a batch' }),
});

export const RescheduleBody = closedObject('RescheduleEmailRequest', null, { scheduled_at: Type.String(scheduledAt) });

export const EmailParams = Type.Object({ id: Type.String({ examples: ['em_01kajc8wz6h3xkq3m1x8e6v5tn'] }) });

const Status = enumOf(EMAIL_STATUSES, 'EmailStatus');

export const AcceptedEmail = objectOf('AcceptedEmail', {
  id: Type.String({ examples: ['em_01kajc8wz6h3xkq3m1x8e6v5tn'] }),
  status: Type.Enum(['queued', 'scheduled']),
  created_at: Timestamp,
  scheduled_at: nullable(Timestamp),
});

export const Rescheduled = objectOf('RescheduledEmail', {
  id: Type.String(),
  status: Type.Literal('scheduled'),
  scheduled_at: Timestamp,
});
export const Canceled = objectOf('CanceledEmail', { id: Type.String(), status: Type.Literal('canceled') });

export const ContentBody = objectOf('EmailContent', {
  subject: Type.String(),
  html: nullable(Type.String()),
  text: nullable(Type.String()),
  headers: Type.Record(Type.String(), Type.String(), { description: 'The custom headers' }),
});

export const EmailBody = objectOf('Email', {
  id: Type.String(),
  batch_id: nullable(Type.String()),
  from: Type.String(),
  to: Type.Array(Type.String()),
  cc: nullable(Type.Array(Type.String())),
  bcc: nullable(Type.Array(Type.String())),
  reply_to: nullable(Type.Array(Type.String())),
  subject: Type.String(),
  marketing: Type.Boolean(),
  tags: Type.Array(Tag),
  headers: Type.Record(Type.String(), Type.String()),
  status: Status,
  error: nullable(Type.String()),
  bounce_reason: nullable(enumOf(BOUNCE_REASONS, 'BounceReason')),
  created_at: Timestamp,
  scheduled_at: nullable(Timestamp),
  last_event_at: Timestamp,
  events: Type.Array(timelineEntry('email', 'Email', { machine: ByMachine }), { description: 'Oldest first' }),
  attachments: Type.Array(AttachmentMetadata, { description: 'The metadata of the files, without download links' }),
});
