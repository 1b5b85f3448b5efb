import { ServiceError } from '../../domain/errors.ts';
import { listEmails } from '../../store/emails/lists.ts';
import type { EmailSummary } from '../../store/emails/summary.ts';
import type { Cursor } from '../../store/postgres/page.ts';
import { csvParts, exportCsv } from '../csv.ts';
import { page } from '../page.ts';
import { filterQuery, Query, readFilters } from './email-filters.tsx';

/** Emails per query of a download. */
const CHUNK = 500;

/** Returns all emails that match the filters of the list, as comma-separated values. */
export const download = page(Query, async (context) => {
  const { filters, formState, isValid } = readFilters(context);
  if (!isValid) {
    const [[param, problem] = ['', '']] = Object.entries(formState.problems);
    throw new ServiceError('validation_error', problem, param);
  }
  const { pool, organization, input } = context;
  const read = (after: Cursor | null) => listEmails(pool, organization.id, filters, after, CHUNK);
  const change = { action: 'emails.export', detail: { filters: filterQuery(input) } };
  return exportCsv(context, change, 'emails', csvParts(COLUMNS, read, rowOf));
});

const COLUMNS = [
  ...['id', 'created_at', 'status', 'bounce_reason', 'error', 'from', 'to', 'subject', 'tags', 'marketing', 'batch_id'],
  ...['scheduled_at', 'last_event_at'],
] as const;

function rowOf(email: EmailSummary): (string | null)[] {
  const tags = email.tags.map(({ name, value }) => `${name}:${value}`).join(' ');
  const cells = { ...email, to: email.to.join(', '), tags, marketing: String(email.marketing) };
  return COLUMNS.map((column) => cells[column]);
}
