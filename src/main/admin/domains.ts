import { pino } from 'pino';
import { requireOrganization } from '../../intake/accounts.ts';
import {
  addDomain,
  checkDomain,
  findDomainId,
  removeDomain,
  type ShownDomain,
  showDomain,
} from '../../intake/domains.ts';
import { type Domain, listDomains } from '../../store/domains.ts';
import type { Db, Pool } from '../../store/pool.ts';
import { makeSenderDomains, readSenders } from '../sender-domains.ts';
import { webhookSettings } from '../webhook-settings.ts';
import { audited } from './audit.ts';
import { type DatabaseCommand, needed } from './command.ts';

/** Domains that email is sent from. */
export const DOMAINS = {
  'domain add': {
    usage: '--organization O --name D [--verified]',
    run: async (pool, options) => {
      const [organization, name] = [needed(options, 'organization'), needed(options, 'name')];
      return addByHand(pool, organization, name, options['verified'] === true);
    },
  },
  'domain list': {
    usage: '--organization O',
    run: async (pool, options) => listByHand(pool, needed(options, 'organization')),
  },
  'domain show': { usage: '--organization O --name D', run: oneDomain(showByHand) },
  'domain verify': { usage: '--organization O --name D', run: oneDomain(verifyByHand) },
  'domain remove': { usage: '--organization O --name D', run: oneDomain(removeByHand) },
} satisfies Record<string, DatabaseCommand>;

/** A command about one domain, by its name. */
function oneDomain(work: (pool: Pool, organization: string, name: string) => Promise<unknown>): DatabaseCommand['run'] {
  return async (pool, options) => work(pool, needed(options, 'organization'), needed(options, 'name'));
}

/** The relay finds by itself what is left in the outbox. */
const nobody = (): void => undefined;
const PAGE = 1_000;

/** One that is not taken on trust comes with its records; DKIM's when the worker has made its key. */
async function addByHand(
  pool: Pool,
  organization: string,
  name: string,
  trusted: boolean,
): Promise<Domain | ShownDomain> {
  const change = { organization, action: 'domains.create', detail: { name, trusted } };
  const domain = await audited(pool, change, () => addDomain(pool, organization, name, trusted));
  if (trusted) return domain;
  const { records } = await showDomain({ pool, senders: readSenders() }, organization, domain.id);
  return { ...domain, records };
}

async function listByHand(db: Db, organization: string): Promise<Domain[]> {
  await requireOrganization(db, organization);
  const all: Domain[] = [];
  for (;;) {
    const page = await listDomains(db, organization, all.at(-1) ?? null, PAGE);
    all.push(...page);
    if (page.length < PAGE) return all;
  }
}

async function showByHand(pool: Pool, organization: string, name: string): Promise<ShownDomain> {
  const id = await findDomainId(pool, organization, name);
  return showDomain({ pool, senders: readSenders() }, organization, id);
}

async function verifyByHand(pool: Pool, organization: string, name: string): Promise<ShownDomain> {
  const id = await findDomainId(pool, organization, name);
  const { secretKey } = await webhookSettings();
  const deps = makeSenderDomains(pool, secretKey, pino({ level: 'silent' }));
  return audited(pool, { organization, action: 'domains.verify' }, () =>
    checkDomain({ ...deps, wakeRelay: nobody }, organization, id),
  );
}

async function removeByHand(pool: Pool, organization: string, name: string): Promise<{ id: string }> {
  const id = await findDomainId(pool, organization, name);
  return audited(pool, { organization, action: 'domains.delete', detail: { name } }, async () => {
    await removeDomain({ pool, wakeRelay: nobody }, organization, id);
    return { id };
  });
}
