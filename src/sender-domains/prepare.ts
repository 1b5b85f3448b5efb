import { ServiceError } from '../domain/errors.ts';
import { findDomain, keepDkimKey, type WholeDomain } from '../store/domains.ts';
import { keepProviderDomain } from '../store/provider-domains.ts';
import { makeDkimKey } from './dkim-keys.ts';
import { dkimOwner, type SenderDomainDeps } from './deps.ts';

/**
 * Gives a domain a DKIM key of our own where we sign; one that is taken on trust gets none. May be repeated.
 * @returns the domain as it is then; undefined when it was deleted meanwhile
 */
export async function prepareDomain(deps: SenderDomainDeps, domain: WholeDomain): Promise<WholeDomain | undefined> {
  const { pool, senders } = deps;
  const lacksKey = senders.smtpHost !== null && domain.dkim_public === null;
  if (domain.trusted || !lacksKey) return domain;
  await makeKey(deps, domain);
  return findDomain(pool, domain.org_id, domain.id);
}

async function makeKey({ pool, seal, log }: SenderDomainDeps, domain: WholeDomain): Promise<void> {
  const key = await makeDkimKey(domain.org_id).catch((error: unknown) => {
    if (!(error instanceof ServiceError)) throw error;
    // The domain is registered all the same, and its next check makes the key.
    log.warn({ domain: domain.id }, 'too many DKIM keys are being made');
  });
  if (!key) return;
  const { publicKey, privateKey } = key;
  await keepDkimKey(pool, domain.id, publicKey, seal.close(privateKey, dkimOwner(domain)));
}

/**
 * Creates a domain in the operator's account at Postmark, or finds it there. Only for an organization that has proved
 * that it owns the domain: anybody can register any name.
 * @returns whether Postmark has it now
 */
export async function addToPostmark({ pool, postmark, log }: SenderDomainDeps, name: string): Promise<boolean> {
  try {
    const added = await postmark?.add(name);
    if (added) await keepProviderDomain(pool, name, added, added.made);
    return added !== undefined;
  } catch (error) {
    log.warn({ reason: (error as Error).message }, 'Postmark does not take a domain now');
    return false;
  }
}
