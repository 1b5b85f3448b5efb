import { pino } from 'pino';
import { requireOrganization } from '../intake/accounts.ts';
import { addDomain, checkDomain, findDomainId, removeDomain, type ShownDomain, showDomain } from '../intake/domains.ts';
import { type Domain, listDomains } from '../store/domains.ts';
import type { Db, Pool } from '../store/pool.ts';
import { makeSenderDomains, readSenders } from './sender-domains.ts';
import { webhookSettings } from './webhook-settings.ts';

/** What `admin domain …` does. The relay finds by itself what is left in the outbox. */
const nobody = (): void => undefined;
const PAGE = 1_000;

/** One that is not taken on trust comes with its records; DKIM's when the worker has made its key. */
export async function addByHand(
  pool: Pool,
  organization: string,
  name: string,
  trusted: boolean,
): Promise<Domain | ShownDomain> {
  const domain = await addDomain(pool, organization, name, trusted);
  if (trusted) return domain;
  const { records } = await showDomain({ pool, senders: readSenders() }, organization, domain.id);
  return { ...domain, records };
}

export async function listByHand(db: Db, organization: string): Promise<Domain[]> {
  await requireOrganization(db, organization);
  const all: Domain[] = [];
  for (;;) {
    const page = await listDomains(db, organization, all.at(-1) ?? null, PAGE);
    all.push(...page);
    if (page.length < PAGE) return all;
  }
}

export async function showByHand(pool: Pool, organization: string, name: string): Promise<ShownDomain> {
  const id = await findDomainId(pool, organization, name);
  return showDomain({ pool, senders: readSenders() }, organization, id);
}

export async function verifyByHand(pool: Pool, organization: string, name: string): Promise<ShownDomain> {
  const id = await findDomainId(pool, organization, name);
  const { secretKey } = await webhookSettings();
  const deps = makeSenderDomains(pool, secretKey, pino({ level: 'silent' }));
  return checkDomain({ ...deps, wakeRelay: nobody }, organization, id);
}

export async function removeByHand(pool: Pool, organization: string, name: string): Promise<{ id: string }> {
  const id = await findDomainId(pool, organization, name);
  await removeDomain({ pool, wakeRelay: nobody }, organization, id);
  return { id };
}
