import { type TSchema, Type } from 'typebox';
import { BOUNCE_REASONS, EMAIL_STATUSES } from '../../domain/email/email.ts';
import { MAILBOX_LENGTH, PAGE_LENGTH, PAGE_LENGTH_MAX, SEARCH_WORDS, SUBJECT_LENGTH } from '../../domain/limits.ts';
import { enumOf, nullable, objectOf } from './common.ts';
import { EmailBody } from './emails.ts';
import { instantFilter, tagsFilter } from './messages.ts';

/** The query parameters of every list. */
export const paging = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PAGE_LENGTH_MAX,
      default: PAGE_LENGTH,
      description: 'The maximum number of items of the page',
      examples: [10],
    }),
  ),
  cursor: Type.Optional(
    Type.String({ description: 'The `next_cursor` of the previous page, given back with the same filters' }),
  ),
};

/** Creates the response of a list: a page of items under their plural name. */
export function listOf<const Name extends string, Item extends TSchema & { title?: string }>(name: Name, item: Item) {
  const items = { [name]: Type.Array(item) } as Record<Name, ReturnType<typeof Type.Array<Item>>>;
  const pageOfItems = {
    ...items,
    has_more: Type.Boolean({ description: 'Whether there is a next page' }),
    next_cursor: nullable(Type.String(), 'The cursor of the next page; null on the last page'),
  };
  return Type.Object(pageOfItems, { title: `${item.title}List` });
}

const addressFilter = (description: string) =>
  Type.Optional(
    Type.String({
      'x-rule': 'address-filter',
      minLength: 1,
      maxLength: MAILBOX_LENGTH,
      description: `${description}: an address, or \`@\` and a domain, without its subdomains. Case does not matter.`,
      examples: ['ada@example.net', '@example.net'],
    }),
  );

const EmailStatusFilter = enumOf(EMAIL_STATUSES, 'EmailStatus');

export const EmailFilters = {
  tag: tagsFilter,
  status: Type.Optional(
    Type.Union([EmailStatusFilter, Type.Array(EmailStatusFilter, { minItems: 1, maxItems: EMAIL_STATUSES.length })], {
      description: 'Only emails with this status. Repeat the parameter for several statuses.',
      examples: ['delivered', ['bounced', 'complained']],
    }),
  ),
  batch_id: Type.Optional(
    Type.String({
      'x-rule': 'one-line',
      minLength: 1,
      description: 'Only emails of this batch',
      examples: ['bt_01kajc8wz6h3xkq3m1x8e6v5tn'],
    }),
  ),
  to: addressFilter('Only emails with this recipient in `to`, `cc` or `bcc`'),
  from: addressFilter('Only emails from this sender'),
  subject: Type.Optional(
    Type.String({
      'x-rule': 'words',
      minLength: 1,
      maxLength: SUBJECT_LENGTH,
      description: `Only emails whose subject contains all of these words, up to ${SEARCH_WORDS}, in any order. Only whole words match; case does not matter.`,
      examples: ['receipt june'],
    }),
  ),
  created_after: instantFilter('Only emails that were accepted at this time or later'),
  created_before: instantFilter('Only emails that were accepted before this time'),
  bounce_reason: Type.Optional(
    enumOf(BOUNCE_REASONS, 'BounceReason', 'Only bounced emails with this reason', 'mailbox_full'),
  ),
};

/** An email without the fields that only the detail shows. */
export const EmailSummary = Type.Omit(EmailBody, ['cc', 'bcc', 'reply_to', 'headers', 'events', 'attachments'], {
  title: 'EmailSummary',
});

export const TagList = objectOf('TagList', {
  tags: Type.Array(
    Type.Object({
      name: Type.String({ examples: ['kind'] }),
      value: Type.String({ examples: ['receipt'] }),
      count: Type.Integer({ description: 'The number of stored emails with this tag', examples: [17] }),
    }),
    { description: 'Sorted by name, then value' },
  ),
});
