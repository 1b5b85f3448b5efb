import { type TSchema, Type } from 'typebox';
import { TAG_LENGTH, TAGS } from '../../domain/limits.ts';
import { closedObject, objectOf } from './common.ts';
import { Canceled, RescheduleBody, Rescheduled, scheduledAtField, tagsField } from './emails.ts';

/** The fields of requests to send a message. */
export const messageFields = { tags: tagsField, scheduled_at: scheduledAtField };

export const RescheduleMessageBody = closedObject('RescheduleMessageRequest', null, RescheduleBody.properties);
export const RescheduledMessage = objectOf('RescheduledMessage', Rescheduled.properties);
export const CanceledMessage = objectOf('CanceledMessage', Canceled.properties);

/** Creates a query parameter for a time. */
export const instantFilter = (description: string) =>
  Type.Optional(Type.String({ 'x-rule': 'instant', maxLength: 64, description, examples: ['2026-03-01T09:30:00Z'] }));

const tagFilter = { type: 'string', 'x-rule': 'tag-filter' };

/** A query parameter for tags. */
export const tagsFilter = Type.Optional(
  Type.Unsafe<string | string[]>({
    ...tagFilter,
    type: ['string', 'array'],
    items: tagFilter,
    maxItems: TAGS,
    description: `\`name:value\`, of letters, digits, \`_\` and \`-\`, up to ${TAG_LENGTH} characters each. Repeat the parameter to require up to ${TAGS} tags at once.`,
    examples: ['kind:receipt', ['kind:receipt', 'plan:pro']],
  }),
);

/** Creates the filters of a list of messages. */
export function messageFilters<Status extends TSchema>(status: Status, to: Record<string, unknown>) {
  return {
    status: Type.Optional(status),
    to: Type.Optional(Type.String(to)),
    tag: tagsFilter,
    created_after: instantFilter('Only messages that were accepted at this time or later'),
    created_before: instantFilter('Only messages that were accepted before this time'),
  };
}
