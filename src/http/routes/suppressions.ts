import { Type } from 'typebox';
import type { IntakeDeps } from '../../intake/emails.ts';
import { findSuppression, listedAddress, suppress, unsuppress } from '../../accounts/suppressions.ts';
import type { Db } from '../../store/postgres/pool.ts';
import { listSuppressions } from '../../store/suppressions/suppressions.ts';
import { callerOf } from '../plugins/auth.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { listOf } from '../schemas/lists.ts';
import {
  SuppressBody,
  Suppressed,
  SuppressionBody,
  SuppressionParams,
  SuppressionsQuery,
} from '../schemas/suppressions.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';

const tags = ['Suppressions'];

export function addSuppressions({ pool, wakeRelay }: Omit<IntakeDeps, 'withFiles'>) {
  return route(
    {
      tags,
      operationId: 'createSuppressions',
      summary: 'Suppress addresses',
      description:
        'Email is no longer sent to these addresses. Returns 201 if at least one of them is new on the list, 200 if all of them ' +
        'were on it; existing entries are not changed.',
      body: SuppressBody,
      response: { 200: Suppressed, 201: Suppressed },
    },
    async (request, reply) => {
      const { email, emails } = request.body;
      const addresses = emails
        ? emails.map((text, index) => listedAddress(text, `emails.${index}`))
        : [listedAddress(email ?? '', 'email')];
      const { added, suppressions } = await suppress(pool, callerOf(request).org_id, addresses);
      if (added > 0) wakeRelay();
      reply.code(added > 0 ? 201 : 200);
      return emails ? { suppressions } : suppressions[0];
    },
  );
}

export function listOfSuppressions({ pool, secretKey }: { readonly pool: Db; readonly secretKey: SecretKeys }) {
  return listRoute(
    secretKey,
    'suppressions',
    {
      tags,
      operationId: 'listSuppressions',
      summary: 'List suppressions',
      description: 'Addresses that nothing, or no marketing email, is sent to, newest first. Follow `next_cursor`.',
      querystring: SuppressionsQuery,
      response: { 200: listOf('suppressions', SuppressionBody) },
    },
    (request) => {
      const { origin = null, email } = request.query;
      const filters = { origin, email: email === undefined ? null : listedAddress(email, 'email') };
      return {
        filters,
        find: (after, limit) => listSuppressions(pool, callerOf(request).org_id, filters, after, limit),
      };
    },
  );
}

export function getSuppression({ pool }: { readonly pool: Db }) {
  return route(
    {
      tags,
      operationId: 'getSuppression',
      summary: 'Get a suppression',
      description: 'By its id, or by its address: of two of one address, the one for all mail.',
      params: SuppressionParams,
      response: { 200: SuppressionBody },
    },
    (request) => findSuppression(pool, callerOf(request).org_id, request.params.idOrEmail),
  );
}

export function removeSuppression({ pool, wakeRelay }: Omit<IntakeDeps, 'withFiles'>) {
  return route(
    {
      tags,
      operationId: 'deleteSuppressions',
      summary: 'Remove a suppression',
      description:
        'By its id, or all of an address. The address is also taken off the list of the provider, where it has one, ' +
        'within seconds.',
      params: SuppressionParams,
      response: {
        204: Type.Null(),
      },
    },
    async (request) => {
      await unsuppress(pool, callerOf(request).org_id, request.params.idOrEmail);
      wakeRelay();
    },
  );
}
