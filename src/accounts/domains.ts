import { notFound, refuseProblem, requireFound, ServiceError } from '../domain/errors.ts';
import { newId } from '../lib/ids.ts';
import { senderDomainProblem } from '../domain/senders/sender-domain.ts';
import { type ShownRecord, showRecords, wantedRecords } from '../domain/senders/sender-records.ts';
import { checkDomain as check, notifyEndpoints, failCompetingRegistrations } from '../sender-domains/check.ts';
import type { SenderDomainDeps } from '../sender-domains/deps.ts';
import { prepareDomain } from '../sender-domains/prepare.ts';
import {
  updateTracking,
  requestCheck,
  deleteDomain,
  type Domain,
  findDomain,
  findDomains,
  insertDomain,
  lockRegistrations,
  type WholeDomain,
} from '../store/domains/domains.ts';
import { type Db, isDuplicate, type Pool, transaction } from '../store/postgres/pool.ts';
import { requireOrganization } from './organizations.ts';
import { domainName } from './domain-name.ts';
import { type OrganizationLimits, requireCapacity, UNLIMITED_ORGANIZATION } from './organization-limits.ts';

/** Limits on the number of domains, and on the rate of registrations and checks; null means no limit. */
interface DomainLimits {
  readonly organization: OrganizationLimits;
  readonly domains: { readonly take: (orgId: string, tokens: number) => void } | null;
}

export interface DomainDeps extends SenderDomainDeps {
  /** Called after each commit that may have added outbox rows or webhook deliveries that are due. */
  readonly wakeRelay: () => void;
  /** Undefined for the operator's command line, which has no limits. */
  readonly limits?: DomainLimits | undefined;
}

type ShowDeps = Pick<DomainDeps, 'pool' | 'senders'>;

/** A domain in its organization's list. */
type ListedDomain = Omit<Domain, 'org_id'>;
/** A domain with its required DNS records and their status. */
export type ShownDomain = ListedDomain & { readonly records: ShownRecord[] };

/** A check within this time after the last one returns the stored result. */
const CHECK_INTERVAL_SECONDS = 5;

/**
 * Registers a sender domain. It must be verified before email can be sent from it.
 * @throws ServiceError rate_limit_exceeded, validation_error for its name, conflict if this organization has registered it or
 * another one has verified it, or limit_exceeded
 */
export async function registerDomain(deps: DomainDeps, orgId: string, name: string): Promise<ShownDomain> {
  deps.limits?.domains?.take(orgId, 1);
  const { id } = await insert(deps.pool, orgId, name, false, deps.limits?.organization);
  deps.wakeRelay();
  const prepared = await prepareDomain(deps, await requireWhole(deps.pool, orgId, id));
  return toShownDomain(deps, requireFound(prepared, 'domain'));
}

/**
 * Registers a domain for the operator.
 * @param trusted marks it as verified immediately and skips DNS checks
 * @throws ServiceError not_found for the organization, and the errors of registerDomain
 */
export async function registerDomainForOperator(
  pool: Pool,
  orgId: string,
  name: string,
  trusted: boolean,
): Promise<Domain> {
  await requireOrganization(pool, orgId);
  return insert(pool, orgId, name, trusted);
}

async function insert(
  pool: Pool,
  orgId: string,
  text: string,
  trusted: boolean,
  limits = UNLIMITED_ORGANIZATION,
): Promise<Domain> {
  const name = domainName(text, 'name');
  refuseProblem(senderDomainProblem(name), 'name');
  const inserting = transaction(pool, async (client) => {
    await requireCapacity(client, limits, 'domains', orgId);
    // A transaction that verifies a domain must lock the competing registrations before it writes.
    const others = trusted ? await lockRegistrations(client, name) : [];
    const domain = await insertDomain(client, newId('dm'), orgId, name, trusted);
    if (!domain) return undefined;
    await notifyEndpoints(client, domain, 'created');
    if (trusted) {
      await notifyEndpoints(client, domain);
      await failCompetingRegistrations(client, domain, others);
    }
    return domain;
  });
  const domain = await inserting.catch((error: unknown) => {
    if (!isDuplicate(error)) throw error;
  });
  // The message does not depend on the owner, so that it does not reveal other organizations.
  if (!domain) throw new ServiceError('conflict', `the domain ${text} is registered already`, 'name');
  return domain;
}

/** @throws ServiceError not_found */
export async function showDomain(deps: ShowDeps, orgId: string, id: string): Promise<ShownDomain> {
  return toShownDomain(deps, await requireWhole(deps.pool, orgId, id));
}

/**
 * Finds the id of a domain for the operator, who identifies it by organization and name.
 * @throws ServiceError not_found for the organization, domain_not_found, or validation_error
 */
export async function findDomainId(db: Db, orgId: string, text: string): Promise<string> {
  await requireOrganization(db, orgId);
  const name = domainName(text, 'name');
  const [domain] = await findDomains(db, orgId, [name]);
  if (!domain) throw new ServiceError('domain_not_found', `the organization has no domain ${name}`, 'name');
  return domain.id;
}

/**
 * Checks a domain immediately and returns the result. A request shortly after the last check returns the stored result. A failed
 * domain becomes pending again.
 * @throws ServiceError rate_limit_exceeded or not_found
 */
export async function checkDomain(deps: DomainDeps, orgId: string, id: string): Promise<ShownDomain> {
  deps.limits?.domains?.take(orgId, 1);
  const isDue = await requestCheck(deps.pool, orgId, id, CHECK_INTERVAL_SECONDS);
  if (isDue === undefined) throw notFound('domain');
  if (isDue) await check(deps, await requireWhole(deps.pool, orgId, id), false);
  deps.wakeRelay();
  return showDomain(deps, orgId, id);
}

/** Changes of tracking; fields that are undefined or null are unchanged. */
interface TrackingChange {
  readonly open_tracking?: boolean | null;
  readonly click_tracking?: boolean | null;
}

/**
 * Changes tracking of opens and clicks for email that is sent from now on.
 * @param publicUrl the setting `PUBLIC_URL`: the base of tracking links in email by SMTP
 * @throws ServiceError not_found, or validation_error if tracking needs `PUBLIC_URL` and it is not set
 */
export async function changeTracking(
  { publicUrl, ...deps }: ShowDeps & { readonly publicUrl: string | undefined },
  orgId: string,
  id: string,
  change: TrackingChange,
): Promise<ShownDomain> {
  const { open_tracking: opens = null, click_tracking: clicks = null } = change;
  const field = (['open_tracking', 'click_tracking'] as const).find((name) => change[name]);
  if (field && publicUrl === undefined && deps.senders.smtpHost !== null) {
    const problem =
      'cannot be switched on, because PUBLIC_URL is not set; it is the address that links of email by SMTP lead to';
    throw new ServiceError('validation_error', problem, field);
  }
  if (!(await updateTracking(deps.pool, orgId, id, opens, clicks))) throw notFound('domain');
  return showDomain(deps, orgId, id);
}

/**
 * Deletes a domain. New email from it is refused, and pending email from it fails.
 * @throws ServiceError not_found
 */
export async function removeDomain(
  { pool, wakeRelay }: Pick<DomainDeps, 'pool' | 'wakeRelay'>,
  orgId: string,
  id: string,
): Promise<void> {
  await transaction(pool, async (client) => {
    const deleted = await deleteDomain(client, orgId, id);
    await notifyEndpoints(client, requireFound(deleted, 'domain'), 'deleted');
  });
  wakeRelay();
}

async function requireWhole(pool: Pool, orgId: string, id: string): Promise<WholeDomain> {
  return requireFound(await findDomain(pool, orgId, id), 'domain');
}

function toShownDomain({ senders }: ShowDeps, domain: WholeDomain): ShownDomain {
  const { id, name, status, trusted, created_at, verified_at, last_checked_at, next_check_at } = domain;
  const { open_tracking, click_tracking } = domain;
  const records = showRecords(wantedRecords(domain, senders), domain.findings);
  const times = { created_at, verified_at, last_checked_at, next_check_at };
  return { id, name, status, trusted, ...times, open_tracking, click_tracking, records };
}
