import {
  type DomainStatus,
  type Findings,
  findingKey,
  nextStep,
  type Step,
  type Verdict,
  verdictOf,
} from '../domain/senders/sender-domain.ts';
import { ownDkimName, ownershipName, wantedRecords } from '../domain/senders/sender-records.ts';
import {
  failDomains,
  findDomain,
  lockRegistrations,
  type Registration,
  saveCheck,
  type WholeDomain,
} from '../store/domains/domains.ts';
import { type Db, isDuplicate, transaction } from '../store/postgres/pool.ts';
import { saveProviderDomain } from '../store/domains/provider-domains.ts';
import { enqueueEvents } from '../store/webhooks/events.ts';
import { lookUpRecords } from './ask.ts';
import type { SenderDomainDeps } from './deps.ts';
import { addToPostmark, prepareDomain } from './prepare.ts';

/** The error for an organization whose domain another one has verified. It does not name the other one. */
const OWNED_BY_ANOTHER =
  'another account has proved that it owns this domain; delete this registration, or verify it again once that account has released the domain';

/**
 * Looks up a domain's records in DNS, and at Postmark if used. Stores the findings, the status and the time of the next check.
 * Safe to repeat.
 * @param isBackground false for a check on request
 */
export async function checkDomain(deps: SenderDomainDeps, stored: WholeDomain, isBackground: boolean): Promise<void> {
  let domain = await prepareDomain(deps, stored);
  if (!domain) return;
  const { name, findings: before } = domain;
  let wanted = wantedRecords(domain, deps.senders);
  let lookup = await lookUpRecords(deps.dns, name, wanted, before);
  const isOurs = lookup.certain.has(ownershipKey(name)) && lookup.findings[ownershipKey(name)]?.status === 'verified';
  // Ask Postmark only after ownership is proved, because all organizations share one account at Postmark.
  if (deps.postmark && isOurs && domain.provider_id !== null && (await askPostmark(deps, name, domain.provider_id))) {
    domain = await findDomain(deps.pool, domain.org_id, domain.id);
    if (!domain) return;
    wanted = wantedRecords(domain, deps.senders);
    lookup = await lookUpRecords(deps.dns, name, wanted, before);
  }
  const { findings, certain } = lookup;
  const dkim = findingKey({ record: 'DKIM', name: ownDkimName(name) });
  const verdict = verdictOf(wanted, findings, certain);
  // Postmark's records are unknown until the domain is registered there. Before that, Postmark does not send from it.
  const isMissingAtPostmark = deps.postmark !== undefined && domain.provider_id === null;
  await saveOutcome(deps, domain, {
    findings,
    verdict: isMissingAtPostmark && verdict === 'complete' ? 'unsure' : verdict,
    published: certain.has(dkim) ? findings[dkim]?.status === 'verified' : undefined,
    leasedUntil: isBackground ? stored.next_check_at : undefined,
  });
}

/** Updates the state at Postmark. @returns false if Postmark could not be reached; otherwise the stored state may have changed */
async function askPostmark(deps: SenderDomainDeps, name: string, id: number): Promise<boolean> {
  try {
    const registered = await deps.postmark?.verify(id);
    if (registered) await saveProviderDomain(deps.pool, name, registered, false);
    else await addToPostmark(deps, name);
    return true;
  } catch (error) {
    deps.log.warn({ reason: (error as Error).message }, 'could not update the state of a domain at Postmark');
    return false;
  }
}

function ownershipKey(name: string): string {
  return findingKey({ record: 'OWNERSHIP', name: ownershipName(name) });
}

/** The result of a check to store. */
interface Outcome {
  readonly findings: Findings;
  readonly verdict: Verdict;
  /** True if our own DKIM key is in DNS; undefined if that is unknown. */
  readonly published: boolean | undefined;
  /** The time when the lease of a background check expires; undefined for a check on request. */
  readonly leasedUntil: string | null | undefined;
}

async function saveOutcome({ pool, log }: SenderDomainDeps, domain: WholeDomain, outcome: Outcome): Promise<void> {
  const attempt = () => transaction(pool, (client) => saveOutcomeIn(client, domain, outcome));
  const status = await attempt().catch((error: unknown) => {
    // The unique index rejected it: a competing registration has been verified meanwhile.
    if (isDuplicate(error)) return attempt();
    throw error;
  });
  if (status) log.info({ domain: domain.id, status, verdict: outcome.verdict }, 'domain status changed');
}

/** @returns the new status; undefined if it has not changed or the domain was deleted meanwhile */
async function saveOutcomeIn(
  client: Db,
  { id, name }: WholeDomain,
  { findings, verdict, published, leasedUntil }: Outcome,
): Promise<DomainStatus | undefined> {
  const registrations = await lockRegistrations(client, name);
  const self = registrations.find((each) => each.id === id);
  if (!self) return undefined;
  const others = registrations.filter((each) => each !== self);
  const isTaken = others.some((each) => each.status === 'verified');
  // A check whose lease has expired is repeated, and only the repeated check counts.
  const isBackground = self.next_check_at === leasedUntil;
  const step = isTaken ? supersededStep(self) : nextStep(self, verdict, isBackground);
  await saveCheck(client, id, isTaken ? { ...findings, ...ownedByAnother(name, findings) } : findings, step, published);
  if (step.status === self.status) return undefined;
  await notifyEndpoints(client, { ...self, status: step.status });
  if (step.status === 'verified') await failCompetingRegistrations(client, self, others);
  return step.status;
}

function supersededStep({ tries, misses }: Registration): Step {
  return { status: 'failed', tries, misses, nextInMs: null };
}

function ownedByAnother(name: string, findings: Findings): Findings {
  const key = ownershipKey(name);
  const was = findings[key] ?? { found: null, was_right: false };
  return { [key]: { ...was, status: 'failed', error: OWNED_BY_ANOTHER } };
}

/**
 * Fails all pending registrations of a name after one organization has proved ownership or the operator has trusted it.
 * @param others the other registrations of the name, locked by the caller
 */
export async function failCompetingRegistrations(
  db: Db,
  { name }: { readonly name: string },
  others: readonly Registration[],
): Promise<void> {
  const superseded = others.filter(({ status }) => status === 'pending');
  const ids = superseded.map(({ id }) => id);
  await failDomains(db, ids, ownedByAnother(name, {}));
  for (const registration of superseded) await notifyEndpoints(db, { ...registration, status: 'failed' });
}

type Change = 'created' | 'verified' | 'failed' | 'deleted';

/** Enqueues webhook events about a domain, by default about its status. */
export async function notifyEndpoints(
  db: Db,
  { id, org_id, name, status }: Pick<Registration, 'id' | 'org_id' | 'name' | 'status'>,
  change: Change = status === 'verified' ? 'verified' : 'failed',
): Promise<void> {
  const data = { domainId: id, name, status };
  await enqueueEvents(db, [{ org_id, type: `domain.${change}`, data }]);
}
