import { Type } from 'typebox';
import { addressInQuery, requireAddress } from '../../domain/email/address.ts';
import { SUPPRESSION_ORIGINS } from '../../domain/email/suppression.ts';
import { findSuppression, unsuppress } from '../../accounts/suppressions.ts';
import { listSuppressions, type Suppression, type SuppressionFilters } from '../../store/suppressions/suppressions.ts';
import { act } from '../act.ts';
import { csvParts, exportCsv } from '../csv.ts';
import { curl, Empty, inWords, Pager, StatusBadge, Table, Text, TimeCell } from '../elements.tsx';
import { confirm, field, Filters, optionsOf, select } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type Html, idOf, page, type PageResponse, type PageRow, type Visit } from '../page.ts';
import { parseCursor, ROWS_PER_PAGE } from '../cursors.ts';
import { safeNext } from '../session.ts';
import { type Cursor, cutPage } from '../../store/postgres/page.ts';

export const PATH = '/dashboard/suppressions';

/** Entries per query of a download. */
const CHUNK = 1_000;

const Search = Type.Object({
  email: Type.Optional(Type.String({ 'x-rule': 'mailbox-in-query' })),
  origin: Type.Optional(Type.Enum([...SUPPRESSION_ORIGINS])),
  cursor: Type.Optional(Type.String()),
});

const list = page(Search, async (context) => {
  const { pool, organization, query, input, problems } = context;
  const after = parseCursor(query.cursor);
  const isValid = Object.keys(problems).length === 0;
  const suppressions = isValid
    ? await listSuppressions(pool, organization.id, filtersOf(query), after, ROWS_PER_PAGE + 1)
    : [];
  const { rows: entries, next } = cutPage(suppressions, ROWS_PER_PAGE);
  const isWhole = Object.values(input).every((value) => value === '');
  return (
    <Layout context={context} title="Suppressions" actions={<Actions context={context} origin={query.origin} />}>
      {isWhole && entries.length === 0 ? (
        <NoEntry context={context} />
      ) : (
        <>
          <Filters visit={context}>
            {field(context, 'email', 'Address', {
              type: 'search',
              autocomplete: 'off',
              placeholder: 'ada@example.com',
            })}
            {select(context, 'origin', 'Origin', optionsOf(SUPPRESSION_ORIGINS))}
          </Filters>
          {entries.length > 0 && <Entries context={context} entries={entries} />}
          {entries.length === 0 && isValid && <p class="muted">No suppressed addresses match these filters.</p>}
        </>
      )}
      <Pager visit={context} next={next} />
    </Layout>
  );
});

const COLUMNS = ['email', 'origin', 'reason', 'email_id', 'created_at'] as const;

const download = page(Type.Object({ origin: Type.Optional(Type.Enum([...SUPPRESSION_ORIGINS])) }), (context) => {
  const { pool, organization, query } = context;
  const filters = filtersOf(query);
  const read = async (after: Cursor | null) =>
    cutPage(await listSuppressions(pool, organization.id, filters, after, CHUNK + 1), CHUNK);
  const parts = csvParts(COLUMNS, read, (entry) => COLUMNS.map((column) => entry[column]));
  return exportCsv(context, { action: 'suppressions.export', detail: query }, 'suppressions', parts);
});

const remove = action(Type.Object({ next: Type.Optional(Type.String()) }), {
  run: async (context, { next = PATH }) => {
    const entry = await findSuppression(context.pool, context.organization.id, idOf(context));
    return removeEntry(context, entry, safeNext(next));
  },
});

/** Removes an entry from the suppression list for a member. @param next the path to redirect to */
export function removeEntry(
  context: Context,
  { id, email, origin }: Pick<Suppression, 'id' | 'email' | 'origin'>,
  next: string,
): Promise<PageResponse> {
  return act(context, {
    action: 'suppressions.delete',
    run: () => unsuppress(context.deps, context.organization.id, id),
    target: id,
    detail: { email, origin },
    next,
    flash: `${email} was removed from the suppression list.`,
  });
}

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', list],
  ['GET', `${PATH}/download`, 'viewer', download, 'expensive'],
  ['POST', `${PATH}/:id/remove`, 'member', remove],
];

function filtersOf({ email, origin }: { email?: string; origin?: Suppression['origin'] }): SuppressionFilters {
  return { email: email === undefined ? null : requireAddress(addressInQuery(email), 'email'), origin: origin ?? null };
}

function Actions({ context, origin }: { context: Context; origin: string | undefined }): Html {
  return (
    <>
      <a class="button" href={`${PATH}/download${origin === undefined ? '' : `?origin=${origin}`}`}>
        Download as CSV
      </a>
      {context.role !== 'viewer' && (
        <a class="button primary" href={`${PATH}/add`}>
          Add addresses
        </a>
      )}
    </>
  );
}

function NoEntry({ context }: { context: Context }): Html {
  return (
    <Empty
      title="No suppressed addresses"
      command={curl(context, '/v1/suppressions', { email: 'someone@example.com' })}
    >
      <p>
        Hard bounces, complaints and unsubscribes are added automatically.
        {context.role !== 'viewer' && ' Import the list of your previous provider.'}
      </p>
    </Empty>
  );
}

function Entries({ context, entries }: { context: Context; entries: readonly Suppression[] }): Html {
  const mayRemove = context.role !== 'viewer';
  return (
    <Table
      layout="cards"
      caption="Addresses, newest first"
      columns={['Address', 'Origin', 'Reason', 'Since', ...(mayRemove ? [''] : [])]}
    >
      {entries.map(({ id, email, origin, reason, email_id: emailId, created_at: at }) => (
        <tr>
          <th scope="row" safe>
            {email}
          </th>
          <td>
            <StatusBadge status={origin} />
            {origin === 'unsubscribe' && <span class="sub">marketing email only</span>}
          </td>
          <td>
            {reason !== null && <Text text={inWords(reason)} />}
            {emailId !== null && (
              <span class="sub">
                <a href={`/dashboard/emails/${emailId}`}>View email</a>
              </span>
            )}
          </td>
          <TimeCell at={at} short />
          {mayRemove && (
            <td>
              <div class="row">{removeButton(context, id, email)}</div>
            </td>
          )}
        </tr>
      ))}
    </Table>
  );
}

/**
 * A button that asks for confirmation and removes an address from the suppression list.
 * @param id of the suppression
 * @param next the path of the page that follows; the list by default
 */
export function removeButton(visit: Visit, id: string, email: string, next = PATH): Html {
  return confirm(visit, 'Remove', {
    action: `${PATH}/${id}/remove`,
    id: `remove-${id}`,
    fields: { next },
    question: `Email will be sent to ${email} again. The entry at the provider is removed too, unless the provider keeps it, as after a complaint.`,
    small: true,
  });
}
