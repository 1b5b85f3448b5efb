import { Readable } from 'node:stream';
import type { Static, TObject } from 'typebox';
import { parseAddressFilter, wordsOf } from '../../domain/email/search.ts';
import { parseTags } from '../../domain/email/tag-filter.ts';
import { type EmailFilters as StoreFilters, listEmails } from '../../store/emails/lists.ts';
import type { Db } from '../../store/postgres/pool.ts';
import { listTags, type TagCount } from '../../store/emails/tags.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { EmailFilters, EmailSummary, TagList } from '../schemas/lists.ts';
import { instantOf } from './messages.ts';

type Query = Static<TObject<typeof EmailFilters>>;
type ListFilters = StoreFilters & Readonly<Record<string, unknown>>;

export const emails = listRoute('listEmails', 'List emails', {
  name: 'emails',
  item: EmailSummary,
  description:
    'Emails that match all filters, newest first. Follow `next_cursor` until it is null: a page may have fewer ' +
    'emails than `limit`, even none, if each filter matches many emails but few match all of them. ' +
    'Emails that are accepted meanwhile neither repeat nor hide others.',
  filters: EmailFilters,
  filtersOf: ({ query }) => filtersOf(query),
  readPage: ({ pool }, { orgId }, after, limit, filters) => listEmails(pool, orgId, filters, after, limit),
});

/**
 * Returns filters in a normalized form, because a cursor is bound to them. Absent ones are omitted, except that `status` and
 * `batch_id` are null.
 */
function filtersOf(query: Query): ListFilters {
  const { tag, status, batch_id = null, to, from, subject, created_after, created_before, bounce_reason } = query;
  const statuses = [...new Set([status ?? []].flat())].sort();
  const filters = {
    tags: parseTags(tag),
    status: statuses.length > 1 ? statuses : (statuses[0] ?? null),
    batch_id,
    to: addressOf(to),
    from: addressOf(from),
    subject: subject === undefined ? null : wordsOf(subject),
    created_after: instantOf(created_after),
    created_before: instantOf(created_before),
    bounce_reason,
  };
  const isPresent = ([name, value]: [string, unknown]) => value != null || name === 'status' || name === 'batch_id';
  return Object.fromEntries(Object.entries(filters).filter(isPresent)) as unknown as ListFilters;
}

function addressOf(text: string | undefined): string | null {
  const parsed = text === undefined ? text : parseAddressFilter(text);
  return typeof parsed === 'object' ? parsed.address : null;
}

/** Limits the memory for a list: an organization without a tag limit may have millions of tags. */
const TAGS_PER_PAGE = 5_000;

/** Yields the JSON of a list of tags page by page. It holds no database connection while a slow client reads. */
async function* tagListParts(pool: Db, orgId: string, first: TagCount[]): AsyncGenerator<string> {
  yield '{"tags":[';
  for (let page = first; page.length > 0;) {
    yield page.map((tag) => JSON.stringify(tag)).join();
    if (page.length < TAGS_PER_PAGE) break;
    page = await listTags(pool, orgId, page.at(-1) ?? null, TAGS_PER_PAGE);
    if (page.length > 0) yield ',';
  }
  yield ']}';
}

export const tags = route('listTags', 'List tags', {
  description: 'Every tag with the number of stored emails that have it, in any status.',
  response: { 200: TagList },
  handler: async ({ pool }, { orgId }, reply) => {
    const first = await listTags(pool, orgId, null, TAGS_PER_PAGE);
    if (first.length < TAGS_PER_PAGE) return { tags: first };
    reply.type('application/json; charset=utf-8');
    // The schema's serializer does not accept streams.
    return reply.serializer((body: unknown) => body as string).send(Readable.from(tagListParts(pool, orgId, first)));
  },
});
