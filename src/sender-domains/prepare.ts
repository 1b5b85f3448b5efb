import { ServiceError } from '../domain/errors.ts';
import { findDomain, saveDkimKey, type WholeDomain } from '../store/domains/domains.ts';
import { saveProviderDomain } from '../store/domains/provider-domains.ts';
import { makeDkimKey } from './dkim-keys.ts';
import { dkimOwner, type SenderDomainDeps } from './deps.ts';

/**
 * Prepares the records of a domain: a DKIM key of our own if we sign, and a registration in the operator's account at Postmark. A
 * trusted domain needs neither. Safe to repeat: a check adds later what failed now.
 * @returns the updated domain; undefined if it was deleted meanwhile
 */
export async function prepareDomain(deps: SenderDomainDeps, domain: WholeDomain): Promise<WholeDomain | undefined> {
  const { pool, senders, postmark } = deps;
  if (domain.trusted) return domain;
  const lacksKey = senders.smtpHost !== null && domain.dkim_public === null;
  const isMissingAtPostmark = postmark !== undefined && domain.provider_id === null;
  if (!lacksKey && !isMissingAtPostmark) return domain;
  await Promise.all([lacksKey && makeKey(deps, domain), isMissingAtPostmark && addToPostmark(deps, domain.name)]);
  return findDomain(pool, domain.org_id, domain.id);
}

async function makeKey({ pool, seal, log }: SenderDomainDeps, domain: WholeDomain): Promise<void> {
  const key = await makeDkimKey(domain.org_id).catch((error: unknown) => {
    if (!(error instanceof ServiceError)) throw error;
    // The domain remains registered, and its next check generates the key.
    log.warn({ domain: domain.id }, 'too many DKIM keys are being made');
  });
  if (!key) return;
  const { publicKey, privateKey } = key;
  await saveDkimKey(pool, domain.id, publicKey, seal.close(privateKey, dkimOwner(domain)));
}

/** Registers a domain at Postmark, also if Postmark no longer has it. Failures are logged; the next check retries them. */
export async function addToPostmark({ pool, postmark, log }: SenderDomainDeps, name: string): Promise<void> {
  try {
    const added = await postmark?.add(name);
    if (added) await saveProviderDomain(pool, name, added, added.isCreated);
  } catch (error) {
    log.warn({ reason: (error as Error).message }, 'could not register a domain at Postmark');
  }
}
