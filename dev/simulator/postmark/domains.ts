import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Dns } from '../../../src/providers/dns.ts';
import { CODE, Refusal } from './errors.ts';

/** A domain in the simulated account. */
interface SimulatedDomain {
  readonly id: number;
  readonly name: string;
  readonly dkim: { readonly host: string; readonly value: string };
  readonly returnPath: string;
  dkimVerified: boolean;
  returnPathVerified: boolean;
}

const RETURN_PATH_TARGET = 'pm.mtasv.net';
const NAME = /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]*[a-z][a-z0-9-]*$/i;

interface OneDomain {
  readonly Params: { readonly id: string };
}

/**
 * The part of Postmark's account API that is about domains, https://postmarkapp.com/developer/api/domains-api. Kept in
 * memory: a restart forgets all of them.
 * @param dns is asked when a domain is to be verified; null verifies none
 */
export function domainRoutes(app: FastifyInstance, dns: Dns | null): void {
  // Postmark's SDK sends a content type also for requests without a body.
  app.addContentTypeParser('application/json', { parseAs: 'string' }, async (_request: unknown, body: string) => {
    try {
      return body === '' ? null : (JSON.parse(body) as unknown);
    } catch {
      throw new Refusal(422, CODE.invalidJson, 'The body is not JSON.');
    }
  });

  const domains = new Map<number, SimulatedDomain>();
  let last = 36_700;

  const one = (id: string): SimulatedDomain => {
    const domain = domains.get(Number(id));
    if (!domain) throw new Refusal(422, CODE.domainNotFound, 'This domain was not found.');
    return domain;
  };

  app.get('/domains', ({ query }) => {
    const { count, offset } = query as { count?: string; offset?: string };
    const [limit, from] = [Number(count), Number(offset)];
    if (!(limit >= 1 && limit <= 500 && from >= 0))
      throw new Refusal(422, CODE.badQuery, 'count and offset are needed.');
    const all = [...domains.values()];
    return { TotalCount: all.length, Domains: all.slice(from, from + limit).map(summary) };
  });

  app.get<OneDomain>('/domains/:id', ({ params }) => details(one(params.id)));

  // Postmark's SDK uses the final slash; the documentation has the path without it.
  app.post('/domains/', create);
  app.post('/domains', create);

  function create({ body }: { readonly body: unknown }) {
    const { Name: name, ReturnPathDomain: returnPath = '' } = (body ?? {}) as {
      Name?: string;
      ReturnPathDomain?: string;
    };
    if (typeof name !== 'string' || !NAME.test(name))
      throw new Refusal(422, CODE.invalidDomain, 'Name is not a domain.');
    if ([...domains.values()].some((domain) => domain.name === name.toLowerCase())) {
      throw new Refusal(422, CODE.domainExists, 'This domain already exists.');
    }
    const domain: SimulatedDomain = {
      id: ++last,
      name: name.toLowerCase(),
      dkim: { host: `${last}pm._domainkey.${name}`, value: `k=rsa; p=${randomBytes(162).toString('base64')}` },
      returnPath,
      dkimVerified: false,
      returnPathVerified: false,
    };
    domains.set(domain.id, domain);
    return details(domain);
  }

  app.delete<OneDomain>('/domains/:id', ({ params }) => {
    const { id, name } = one(params.id);
    domains.delete(id);
    return { ErrorCode: 0, Message: `Domain ${name} removed.` };
  });

  app.put<OneDomain>('/domains/:id/verifyDKIM', async ({ params }) => {
    const domain = one(params.id);
    const answer = await dns?.txt(domain.dkim.host);
    const bare = (value: string) => value.replace(/\s/g, '');
    const found = answer?.kind === 'found' ? answer.values.map(bare) : [];
    domain.dkimVerified ||= found.includes(bare(domain.dkim.value));
    return details(domain);
  });

  app.put<OneDomain>('/domains/:id/verifyReturnPath', async ({ params }) => {
    const domain = one(params.id);
    const answer = await dns?.cname(domain.returnPath);
    domain.returnPathVerified ||= answer?.kind === 'found' && answer.values.includes(RETURN_PATH_TARGET);
    return details(domain);
  });
}

function summary({ id, name, dkimVerified, returnPathVerified }: SimulatedDomain) {
  return {
    ID: id,
    Name: name,
    SPFVerified: true,
    DKIMVerified: dkimVerified,
    WeakDKIM: false,
    ReturnPathDomainVerified: returnPathVerified,
  };
}

function details(domain: SimulatedDomain) {
  const { dkim, dkimVerified, returnPath } = domain;
  const seen = dkimVerified ? dkim : { host: '', value: '' };
  const pending = dkimVerified ? { host: '', value: '' } : dkim;
  return {
    ...summary(domain),
    SPFHost: domain.name,
    SPFTextValue: 'v=spf1 a mx include:spf.mtasv.net ~all',
    DKIMHost: seen.host,
    DKIMTextValue: seen.value,
    DKIMPendingHost: pending.host,
    DKIMPendingTextValue: pending.value,
    DKIMRevokedHost: '',
    DKIMRevokedTextValue: '',
    SafeToRemoveRevokedKeyFromDNS: false,
    DKIMUpdateStatus: dkimVerified ? 'Verified' : 'Pending',
    ReturnPathDomain: returnPath,
    ReturnPathDomainCNAMEValue: returnPath === '' ? '' : RETURN_PATH_TARGET,
  };
}
