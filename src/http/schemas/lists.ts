import { type TSchema, Type } from 'typebox';
import { EMAIL_STATUSES } from '../../domain/email/email.ts';
import { PAGE_LENGTH, PAGE_LENGTH_MAX, TAG_LENGTH, TAGS } from '../../domain/limits.ts';
import { enumOf, nullable, objectOf } from './common.ts';
import { EmailBody } from './emails.ts';

/** Query parameters of every list. */
export const paging = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PAGE_LENGTH_MAX,
      default: PAGE_LENGTH,
      description: 'Most items of the page',
      examples: [10],
    }),
  ),
  cursor: Type.Optional(
    Type.String({ description: 'The `next_cursor` of the previous page, given back with the same filters' }),
  ),
};

/** The response of a list: a page of items under their plural name. */
export function listOf<const Name extends string, Item extends TSchema & { title?: string }>(name: Name, item: Item) {
  const items = { [name]: Type.Array(item) } as Record<Name, ReturnType<typeof Type.Array<Item>>>;
  const pageOfItems = {
    ...items,
    has_more: Type.Boolean({ description: 'Whether there is a next page' }),
    next_cursor: nullable(Type.String(), 'Leads to the next page; null on the last'),
  };
  return Type.Object(pageOfItems, { title: `${item.title}List` });
}

const tagFilter = { type: 'string', 'x-rule': 'tag-filter' };

export const EmailFilters = {
  tag: Type.Optional(
    Type.Unsafe<string | string[]>({
      ...tagFilter,
      type: ['string', 'array'],
      items: tagFilter,
      maxItems: TAGS,
      description: `\`name:value\`, of letters, digits, \`_\` and \`-\`, up to ${TAG_LENGTH} characters each. Repeat the parameter to require up to ${TAGS} tags at once.`,
      examples: ['kind:receipt', ['kind:receipt', 'plan:pro']],
    }),
  ),
  status: Type.Optional(enumOf(EMAIL_STATUSES, 'EmailStatus', 'Only emails that have this status now', 'delivered')),
  batch_id: Type.Optional(
    Type.String({
      'x-rule': 'one-line',
      description: 'Only emails of this batch',
      examples: ['bt_01kajc8wz6h3xkq3m1x8e6v5tn'],
    }),
  ),
};

/** An email without the fields that only its detail shows. */
export const EmailSummary = Type.Omit(EmailBody, ['cc', 'bcc', 'reply_to', 'headers', 'events', 'attachments'], {
  title: 'EmailSummary',
});

export const TagList = objectOf('TagList', {
  tags: Type.Array(
    Type.Object({
      name: Type.String({ examples: ['kind'] }),
      value: Type.String({ examples: ['receipt'] }),
      count: Type.Integer({ description: 'How many stored emails have it', examples: [17] }),
    }),
    { description: 'By name, then value' },
  ),
});
