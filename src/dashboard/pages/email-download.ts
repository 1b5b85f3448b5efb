import { ServiceError } from '../../domain/errors.ts';
import { type EmailFilters, listEmails } from '../../store/emails/lists.ts';
import type { EmailSummary } from '../../store/emails/summary.ts';
import type { Cursor } from '../../store/postgres/page.ts';
import { act } from '../act.ts';
import { csvDownload, writeCsv } from '../csv.ts';
import { type Context, page } from '../page.ts';
import { filterQuery, Query, readFilters } from './email-filters.tsx';

/** Emails per query of a download. */
const CHUNK = 500;

/** Returns all emails that match the filters of the list, as comma-separated values. */
export const download = page(Query, async (context) => {
  const { filters, filled, isValid } = readFilters(context);
  if (!isValid) {
    const [[param, problem] = ['', '']] = Object.entries(filled.problems);
    throw new ServiceError('validation_error', problem, param);
  }
  return act(context, {
    action: 'emails.export',
    run: () => Promise.resolve(),
    detail: { filters: filterQuery(context.given) },
    next: () => csvDownload('emails', partsOf(context, filters)),
  });
});

const COLUMNS = [
  ...['id', 'created_at', 'status', 'bounce_reason', 'error', 'from', 'to', 'subject', 'tags', 'marketing', 'batch_id'],
  ...['scheduled_at', 'last_event_at'],
] as const;

/** Reads the list in chunks, since it may be long. */
async function* partsOf({ pool, organization }: Context, filters: EmailFilters): AsyncGenerator<string> {
  yield writeCsv([COLUMNS]);
  let next: Cursor | null = null;
  do {
    const page: Awaited<ReturnType<typeof listEmails>> = await listEmails(pool, organization.id, filters, next, CHUNK);
    if (page.emails.length > 0) yield writeCsv(page.emails.map(rowOf));
    next = page.next;
  } while (next);
}

function rowOf(email: EmailSummary): (string | null)[] {
  const tags = email.tags.map(({ name, value }) => `${name}:${value}`).join(' ');
  const cells = { ...email, to: email.to.join(', '), tags, marketing: String(email.marketing) };
  return COLUMNS.map((column) => cells[column]);
}
