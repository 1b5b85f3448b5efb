import { newDkimKey } from '../domain/dkim.ts';
import { findDomain, keepDkimKey, type WholeDomain } from '../store/domains.ts';
import { keepProviderDomain } from '../store/provider-domains.ts';
import { dkimOwner, type SenderDomainDeps } from './deps.ts';

/**
 * Gives a domain what its records are made of: a DKIM key of our own where we sign, and a place in the operator's account
 * at Postmark. One that is taken on trust gets neither. May be repeated; what Postmark cannot give now it gives later.
 * @returns the domain as it is then; undefined when it was deleted meanwhile
 */
export async function prepareDomain(deps: SenderDomainDeps, domain: WholeDomain): Promise<WholeDomain | undefined> {
  const { pool, senders, postmark } = deps;
  if (domain.trusted) return domain;
  const lacksKey = senders.smtpHost !== null && domain.dkim_public === null;
  const lacksPlace = postmark !== undefined && domain.provider_id === null;
  if (!lacksKey && !lacksPlace) return domain;
  await Promise.all([lacksKey && makeKey(deps, domain), lacksPlace && addToPostmark(deps, domain.name)]);
  return findDomain(pool, domain.org_id, domain.id);
}

async function makeKey({ pool, seal }: SenderDomainDeps, domain: WholeDomain): Promise<void> {
  const { publicKey, privateKey } = await newDkimKey();
  await keepDkimKey(pool, domain.id, publicKey, seal.close(privateKey, dkimOwner(domain)));
}

/** Also when Postmark has forgotten the one that it had. */
export async function addToPostmark({ pool, postmark, log }: SenderDomainDeps, name: string): Promise<void> {
  try {
    const added = await postmark?.add(name);
    if (added) await keepProviderDomain(pool, name, added, added.made);
  } catch (error) {
    log.warn({ reason: (error as Error).message }, 'Postmark does not take a domain now');
  }
}
