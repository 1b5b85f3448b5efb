import { parseStatusFilter } from '../../domain/status-filter.ts';
import { listApiRequests } from '../../store/accounts/api-requests.ts';
import { listRoute } from '../list-route.ts';
import { ApiRequestBody, RequestFilters } from '../schemas/requests.ts';

export const list = listRoute('listApiRequests', 'List API requests', {
  name: 'requests',
  item: ApiRequestBody,
  description:
    'Requests with the API keys of the organization, including refused ones, latest first: their time, key and ' +
    'result. They appear within seconds and are kept for some days. No body and no value of a path or query is ' +
    'kept. Under very high load, requests may be missing. With filters, a page may be empty while `has_more` is true: follow ' +
    '`next_cursor` until it is null.',
  filters: RequestFilters,
  filtersOf: ({ query: { status, path = null, key = null, request_id = null } }) => ({
    status: (status !== undefined && parseStatusFilter(status)) || null,
    path,
    key,
    request_id,
  }),
  readPage: ({ pool }, { orgId }, after, limit, filters) => listApiRequests(pool, orgId, filters, after, limit),
});
