import { type Static, Type } from 'typebox';
import { parseStatusFilter } from '../../domain/status-filter.ts';
import { type ApiRequest, listApiRequests } from '../../store/accounts/api-requests.ts';
import { findKeyNames, listKeys } from '../../store/accounts/keys.ts';
import { escapeHtml } from '../../lib/html.ts';
import { Empty, inWords, NumberCell, Pager, Sub, Table, TimeCell } from '../elements.tsx';
import { field, Filters, type Options, select } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { type Html, page, type PageRow } from '../page.ts';
import { parseCursor, ROWS_PER_PAGE } from '../cursors.ts';
import { daysInWords } from './settings.tsx';
import { formatNumber } from '../../lib/text.ts';

const PATH = '/dashboard/requests';
/** Maximum number of keys in the filter. */
const KEYS = 100;

const STATUSES = [
  ['', 'Any'],
  ['2xx', 'Successful (2xx)'],
  ['4xx', 'Refused (4xx)'],
  ['5xx', 'Failed (5xx)'],
] as const;

const Query = Type.Object({
  status: Type.Optional(Type.String({ 'x-rule': 'status-filter' })),
  path: Type.Optional(Type.String({ 'x-rule': 'one-line' })),
  key: Type.Optional(Type.String({ 'x-rule': 'one-line' })),
  request_id: Type.Optional(Type.String({ 'x-rule': 'one-line' })),
  cursor: Type.Optional(Type.String()),
});

const list = page(Query, async (context) => {
  const { pool, organization, query, input, problems } = context;
  const isValid = Object.keys(problems).length === 0;
  const keys = await listKeys(pool, organization.id, null, KEYS);
  const options = keys.map(({ id, name }) => [id, name ?? id] as const);
  const { rows, next } = isValid
    ? await listApiRequests(pool, organization.id, filtersOf(query), parseCursor(query.cursor), ROWS_PER_PAGE)
    : { rows: [], next: null };
  const names = await findKeyNames(
    pool,
    organization.id,
    rows.flatMap(({ key_id }) => key_id ?? []),
  );
  const isFiltered = Object.values(input).some((value) => value !== '');
  return (
    <Layout context={context} title="API requests">
      {rows.length === 0 && !isFiltered ? (
        <Empty title="No requests yet">
          <p safe>{explain(context.deps.retention.requestLogDays)}</p>
        </Empty>
      ) : (
        <>
          <Filters visit={context}>
            {select(context, 'status', 'Status', withOther(STATUSES, query.status))}
            {select(context, 'key', 'API key', withOther([['', 'Any'], ...options], query.key))}
            {field(context, 'path', 'Path', { placeholder: '/v1/emails/:id', autocomplete: 'off' })}
            {field(context, 'request_id', 'Request ID', { placeholder: 'req_…', autocomplete: 'off' })}
          </Filters>
          {rows.length > 0 && <Requests requests={rows} names={names} />}
          {rows.length === 0 && isValid && (
            <p class="muted">
              {next === null
                ? 'No requests match these filters.'
                : 'No matches among the latest requests. Look at older ones.'}
            </p>
          )}
        </>
      )}
      <Pager visit={context} next={next} />
    </Layout>
  );
});

export const rows: readonly PageRow[] = [['GET', PATH, 'viewer', list]];

function explain(days: number): string {
  if (days === 0) return 'The operator of this service has turned the log of API requests off.';
  const content = 'path, status, duration and API key, but no bodies';
  return `Requests of your programs appear here within seconds: ${content}. They are kept for ${daysInWords(days)}.`;
}

/** Returns the path of the page about one request. */
export function requestPath(id: string): string {
  return `${PATH}?request_id=${encodeURIComponent(id)}`;
}

function filtersOf({ status, path, key, request_id: requestId }: Static<typeof Query>) {
  return {
    status: (status !== undefined && parseStatusFilter(status)) || null,
    path: path ?? null,
    key: key ?? null,
    request_id: requestId?.trim() ?? null,
  };
}

/** Adds the selected value if the options lack it: another status, or a revoked key. */
function withOther(options: Options, value: string | undefined): Options {
  const isOffered = value === undefined || options.some(([option]) => option === value);
  return isOffered ? options : [...options, [value, value]];
}

function Requests({ requests, names }: { requests: readonly ApiRequest[]; names: ReadonlyMap<string, string> }): Html {
  return (
    <Table
      layout="requests"
      caption="API requests, newest first"
      columns={['Time', 'Request', 'Status', ['Duration', 'number'], 'API key', 'Request ID']}
    >
      {requests.map(({ id, method, path, status, error_code: code, key_id: key, duration_ms: ms, created_at: at }) => {
        const request = `${method} ${path ?? '(no such path)'}`;
        return (
          <tr>
            <TimeCell at={at} short />
            <td title={escapeHtml(request)}>
              <code safe>{request}</code>
            </td>
            <td title={code ?? undefined}>
              <span class={['badge', toneOf(status)]} safe>
                {String(status)}
              </span>
              {code !== null && <Sub text={inWords(code)} />}
            </td>
            <NumberCell text={`${formatNumber(ms)} ms`} />
            <td>
              {key === null ? (
                <span class="muted">dashboard</span>
              ) : (
                <a href={`${PATH}?key=${encodeURIComponent(key)}`} title={key} safe>
                  {names.get(key) ?? key}
                </a>
              )}
            </td>
            <td title={id}>
              <code safe>{id}</code>
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

function toneOf(status: number): string {
  if (status >= 500) return 'bad';
  return status >= 400 ? 'warning' : 'good';
}
