import { Type } from 'typebox';
import { checkDomain, registerDomain, removeDomain, showDomain } from '../../accounts/domains.ts';
import { listDomains } from '../../store/domains/domains.ts';
import { authorizeDomain, callerOf } from '../plugins/auth.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { AddDomainBody, DomainBody, DomainParams, DomainSummary } from '../schemas/domains.ts';

export const add = route(
  {
    operationId: 'createDomain',
    summary: 'Register a domain',
    description:
      'Email can be sent from a domain once it is verified: add its `records` to its DNS. They are checked immediately, ' +
      'then at growing intervals for 72 hours, and daily once the domain is verified.',
    body: AddDomainBody,
    response: { 201: DomainBody },
  },
  ({ domains }, { orgId, body }) => registerDomain(domains, orgId, body.name),
);

export const list = listRoute(
  'domains',
  DomainSummary,
  {
    operationId: 'listDomains',
    summary: 'List domains',
    description: 'Registered domains, newest first, without their records. Follow `next_cursor` until it is null.',
  },
  ({ pool }, { orgId }, after, limit) => listDomains(pool, orgId, after, limit),
);

export const get = route(
  {
    operationId: 'getDomain',
    summary: 'Get a domain',
    description: 'One domain with its records, and what was found of them when DNS was last asked.',
    params: DomainParams,
    response: { 200: DomainBody },
  },
  ({ domains }, { orgId, params }) => showDomain(domains, orgId, params.id),
);

export const verify = route(
  {
    operationId: 'verifyDomain',
    summary: 'Verify a domain',
    description:
      'Asks DNS now and answers with what is there; asked again within seconds, with what was found then. A domain ' +
      'that has failed begins anew.',
    params: DomainParams,
    response: { 200: DomainBody },
  },
  ({ domains }, request) => {
    authorizeDomain(callerOf(request), request.params.id);
    return checkDomain(domains, request.orgId, request.params.id);
  },
);

export const remove = route(
  {
    operationId: 'deleteDomain',
    summary: 'Delete a domain',
    description: 'Email can no longer be sent from this domain. Accepted email from it fails when it is due.',
    params: DomainParams,
    response: { 204: Type.Null() },
  },
  ({ domains }, request) => {
    authorizeDomain(callerOf(request), request.params.id);
    return removeDomain(domains, request.orgId, request.params.id);
  },
);
