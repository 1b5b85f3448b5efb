import { Type } from 'typebox';
import { findSuppression, suppress, unsuppress } from '../../accounts/suppressions.ts';
import { addressInQuery, requireAddress } from '../../domain/email/address.ts';
import { listSuppressions } from '../../store/suppressions/suppressions.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import {
  SuppressBody,
  Suppressed,
  SuppressionBody,
  SuppressionFilters,
  SuppressionParams,
} from '../schemas/suppressions.ts';

export const addSuppressions = route('createSuppressions', 'Suppress addresses', {
  description:
    'Email is no longer sent to these addresses. Returns 201 if at least one of them is new on the list, 200 if all of them ' +
    'were on it; existing entries are not changed.',
  body: SuppressBody,
  response: { 200: Suppressed, 201: Suppressed },
  handler: async (deps, { orgId, body: { email, emails } }, reply) => {
    const addresses = emails
      ? emails.map((text, index) => requireAddress(text, `emails.${index}`))
      : [requireAddress(email ?? '', 'email')];
    const { added, suppressions } = await suppress(deps, orgId, addresses);
    reply.code(added > 0 ? 201 : 200);
    return emails ? { suppressions } : suppressions[0];
  },
});

export const list = listRoute('listSuppressions', 'List suppressions', {
  name: 'suppressions',
  item: SuppressionBody,
  description: 'Addresses that nothing, or no marketing email, is sent to, newest first. Follow `next_cursor`.',
  filters: SuppressionFilters,
  filtersOf: ({ query: { origin = null, email } }) => ({
    origin,
    email: email === undefined ? null : requireAddress(addressInQuery(email), 'email'),
  }),
  read: ({ pool }, { orgId }, after, limit, filters) => listSuppressions(pool, orgId, filters, after, limit),
});

export const getSuppression = route('getSuppression', 'Get a suppression', {
  description: 'By id or address. If an address has two entries, returns the one for all mail.',
  params: SuppressionParams,
  response: { 200: SuppressionBody },
  handler: ({ pool }, { orgId, params }) => findSuppression(pool, orgId, params.idOrEmail),
});

export const removeSuppression = route('deleteSuppressions', 'Remove a suppression', {
  description:
    'By id, or all entries of an address. The address is also removed from the list of the provider, if it has one, ' +
    'within seconds, unless another organization needs the entry or the provider keeps it, as Postmark does after a complaint.',
  params: SuppressionParams,
  response: { 204: Type.Null() },
  handler: async (deps, { orgId, params }) => {
    await unsuppress(deps, orgId, params.idOrEmail);
  },
});
