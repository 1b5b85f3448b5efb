import type { BounceReason, EmailStatus, Tag } from '../../domain/email/email.ts';
import { type Search, wantedTerms } from '../../domain/email/search.ts';
import { type Cursor, cutPage, type Page, START } from '../postgres/page.ts';
import type { Db } from '../postgres/pool.ts';
import { bySearchIndex } from './search.ts';
import type { Conditions, EmailSummary, Walker } from './summary.ts';
import { byStatus, byTag, newest, ofBatch } from './walks.ts';

/** The conditions of a list; an email must meet all of them. */
export interface EmailFilters extends Search {
  readonly tags: readonly Tag[];
  /** Several are alternatives. */
  readonly status: EmailStatus | readonly EmailStatus[] | null;
  readonly batch_id: string | null;
  readonly bounce_reason?: BounceReason | null;
  /** Inclusive. */
  readonly created_after?: string | null;
  /** Exclusive. */
  readonly created_before?: string | null;
}

/**
 * Lists an organization's emails that meet all filters, newest first.
 * @param after the end of the previous page, or null
 * @param limit the maximum number of emails. A page may contain fewer, even none, although `next` is not null
 */
export async function listEmails(
  db: Db,
  orgId: string,
  filters: EmailFilters,
  after: Cursor | null,
  limit: number,
): Promise<Page<EmailSummary>> {
  const conditions = conditionsOf(orgId, filters);
  if (contradicts(conditions)) return { rows: [], next: null };
  const rows: EmailSummary[] = [];
  let cursor: Cursor | null = startOf(after, filters.created_before);
  for (const walk of walkers(db, conditions, filters.batch_id)) {
    const { found, next } = await walk(cursor, limit + 1 - rows.length);
    rows.push(...found);
    if (rows.length > limit) return cutPage(rows, limit);
    cursor = next;
    if (!cursor) break;
  }
  return { rows, next: cursor };
}

function conditionsOf(orgId: string, filters: EmailFilters): Conditions {
  const { tags, status, bounce_reason: bounceReason = null, created_after: since } = filters;
  const requested = status === null ? null : [...new Set([status].flat())];
  // Only bounced emails have a reason.
  const withReason = (['bounced'] as const).filter((each) => requested?.includes(each) ?? true);
  const statuses = bounceReason === null ? requested : withReason;
  return { orgId, tags, statuses, bounceReason, since: since ?? '-infinity', search: filters };
}

/** Returns the position at which a page begins. As text, `infinity` sorts after all times. */
function startOf(after: Cursor | null, createdBefore: string | null | undefined): Cursor {
  const start = createdBefore == null ? START : { created_at: createdBefore, id: '' };
  return after !== null && after.created_at < start.created_at ? after : start;
}

/** Tag names are unique within an email, so no email has two values of one name. */
function contradicts({ tags, statuses }: Conditions): boolean {
  const names = new Set(tags.map(({ name }) => name));
  return statuses?.length === 0 || names.size < new Set(tags.map(({ name, value }) => `${name}:${value}`)).size;
}

/** Chooses the indexes to walk one after the other. Each walk continues where the previous one has stopped. */
function walkers(db: Db, conditions: Conditions, batchId: string | null): Walker[] {
  const { tags, statuses, search } = conditions;
  if (batchId !== null) return [ofBatch(db, conditions, batchId)];
  // Each filter has an index, by which rare values are found.
  const chosen = [
    ...(wantedTerms(search).length > 0 ? [bySearchIndex(db, conditions)] : []),
    ...(tags.length > 0 ? [byTag(db, conditions)] : []),
    ...(statuses !== null ? [byStatus(db, conditions, statuses)] : []),
  ];
  return chosen.length > 0 ? chosen : [newest(db, conditions)];
}
