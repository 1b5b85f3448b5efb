import { Type } from 'typebox';
import { changeTracking, checkDomain, registerDomain, removeDomain, showDomain } from '../../accounts/domains.ts';
import { listDomains } from '../../store/domains/domains.ts';
import { authorizeDomain, callerOf } from '../plugins/auth.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { AddDomainBody, DomainBody, DomainParams, DomainSummary, EditDomainBody } from '../schemas/domains.ts';

export const add = route('createDomain', 'Register a domain', {
  description:
    'Email can be sent from a domain once it is verified: add its `records` to its DNS. They are checked immediately, ' +
    'then at growing intervals for 72 hours, and daily once the domain is verified.',
  body: AddDomainBody,
  response: { 201: DomainBody },
  handler: ({ domains }, { orgId, body }) => registerDomain(domains, orgId, body.name),
});

export const list = listRoute('listDomains', 'List domains', {
  name: 'domains',
  item: DomainSummary,
  description: 'Registered domains, newest first, without their records. Follow `next_cursor` until it is null.',
  read: ({ pool }, { orgId }, after, limit) => listDomains(pool, orgId, after, limit),
});

export const get = route('getDomain', 'Get a domain', {
  description: 'One domain with its DNS records and the result of the last check of each.',
  params: DomainParams,
  response: { 200: DomainBody },
  handler: ({ domains }, { orgId, params }) => showDomain(domains, orgId, params.id),
});

export const edit = route('updateDomain', 'Change a domain', {
  description:
    'Enables or disables open and click tracking for email that is sent from now on. Both are off by default. Email by ' +
    'SMTP is tracked by this service, which needs the setting `PUBLIC_URL`.',
  params: DomainParams,
  body: EditDomainBody,
  response: { 200: DomainBody },
  handler: ({ domains }, request) => {
    const { orgId, params, body } = request;
    authorizeDomain(callerOf(request), params.id);
    return changeTracking(domains, orgId, params.id, body);
  },
});

export const verify = route('verifyDomain', 'Verify a domain', {
  description:
    'Checks the DNS records now and returns the result. Within seconds of the last check, returns the stored result. A failed ' +
    'domain becomes pending again.',
  params: DomainParams,
  response: { 200: DomainBody },
  handler: ({ domains }, request) => {
    authorizeDomain(callerOf(request), request.params.id);
    return checkDomain(domains, request.orgId, request.params.id);
  },
});

export const remove = route('deleteDomain', 'Delete a domain', {
  description: 'Email can no longer be sent from this domain. Accepted email from it fails when it is due.',
  params: DomainParams,
  response: { 204: Type.Null() },
  handler: ({ domains }, request) => {
    authorizeDomain(callerOf(request), request.params.id);
    return removeDomain(domains, request.orgId, request.params.id);
  },
});
