import { Type } from 'typebox';
import {
  checkDomain,
  type DomainIntakeDeps,
  registerDomain,
  removeDomain,
  showDomain,
} from '../../accounts/domains.ts';
import type { Limits } from '../../intake/emails.ts';
import type { SenderDomainDeps } from '../../sender-domains/deps.ts';
import { listDomains } from '../../store/domains/domains.ts';
import { authorizeDomain, callerOf } from '../plugins/auth.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { AddDomainBody, DomainBody, DomainParams, DomainsQuery, DomainSummary } from '../schemas/domains.ts';
import { listOf } from '../schemas/lists.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';

export interface DomainRoutesDeps {
  readonly senderDomains: SenderDomainDeps;
  readonly wakeRelay: () => void;
  readonly limits: Limits;
  readonly secretKey: SecretKeys;
}

const tags = ['Domains'];

function intakeOf({ senderDomains, wakeRelay, limits }: DomainRoutesDeps): DomainIntakeDeps {
  return { ...senderDomains, wakeRelay, limits };
}

export function add(deps: DomainRoutesDeps) {
  const intake = intakeOf(deps);
  return route(
    {
      tags,
      operationId: 'createDomain',
      summary: 'Register a domain',
      description:
        'Email can be sent from a domain once it is verified: add its `records` to its DNS. They are checked immediately, ' +
        'then at growing intervals for 72 hours, and daily once the domain is verified.',
      body: AddDomainBody,
      response: { 201: DomainBody },
    },
    (request) => registerDomain(intake, callerOf(request).org_id, request.body.name),
  );
}

export function list({ senderDomains: { pool }, secretKey }: DomainRoutesDeps) {
  return listRoute(
    secretKey,
    'domains',
    {
      tags,
      operationId: 'listDomains',
      summary: 'List domains',
      description: 'Registered domains, newest first, without their records. Follow `next_cursor` until it is null.',
      querystring: DomainsQuery,
      response: { 200: listOf('domains', DomainSummary) },
    },
    (request) => ({ find: (after, limit) => listDomains(pool, callerOf(request).org_id, after, limit) }),
  );
}

export function get(deps: DomainRoutesDeps) {
  const intake = intakeOf(deps);
  return route(
    {
      tags,
      operationId: 'getDomain',
      summary: 'Get a domain',
      description: 'One domain with its records, and what was found of them when DNS was last asked.',
      params: DomainParams,
      response: { 200: DomainBody },
    },
    (request) => showDomain(intake, callerOf(request).org_id, request.params.id),
  );
}

export function verify(deps: DomainRoutesDeps) {
  const intake = intakeOf(deps);
  return route(
    {
      tags,
      operationId: 'verifyDomain',
      summary: 'Verify a domain',
      description:
        'Asks DNS now and answers with what is there; asked again within seconds, with what was found then. A domain ' +
        'that has failed begins anew.',
      params: DomainParams,
      response: { 200: DomainBody },
    },
    (request) => {
      authorizeDomain(callerOf(request), request.params.id);
      return checkDomain(intake, callerOf(request).org_id, request.params.id);
    },
  );
}

export function remove(deps: DomainRoutesDeps) {
  const intake = intakeOf(deps);
  return route(
    {
      tags,
      operationId: 'deleteDomain',
      summary: 'Delete a domain',
      description: 'Email can no longer be sent from this domain. Accepted email from it fails when it is due.',
      params: DomainParams,
      response: { 204: Type.Null() },
    },
    async (request) => {
      authorizeDomain(callerOf(request), request.params.id);
      await removeDomain(intake, callerOf(request).org_id, request.params.id);
    },
  );
}
