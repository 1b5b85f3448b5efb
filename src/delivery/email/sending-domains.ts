import { createPrivateKey, type KeyObject } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { DKIM_SELECTOR, type DkimSigner } from '../../domain/senders/dkim.ts';
import type { Tracking } from '../../domain/email/tracked-links.ts';
import type { Seal } from '../../lib/seal.ts';
import { dkimOwner } from '../../sender-domains/deps.ts';
import { findSendingDomains, type SendingDomain } from '../../store/domains/domains.ts';
import type { Db } from '../../store/postgres/pool.ts';

/** The part of an email that identifies its sender domain. */
interface DomainUse {
  readonly email: { readonly org_id: string };
  readonly outgoing: { readonly from: { readonly domain: string } };
}

/** How an email from a domain is sent, or the error why it may not be sent. */
type SendingDecision = { readonly signer: DkimSigner | null; readonly tracking: Tracking } | string;

/**
 * Checks the sender domains of many emails in one statement. A domain may have been deleted since an email was accepted, and
 * may now belong to another organization.
 * @returns a function that returns the decision for each of the emails
 */
export type SendingDomains = (db: Db, emails: readonly DomainUse[]) => Promise<(email: DomainUse) => SendingDecision>;

/** Each key takes some kilobytes. */
const MAX_CACHED_KEYS = 1_000;

/**
 * @param seal decrypts the private keys of domains. After a change of `SECRET_KEY` email is sent unsigned, which is better
 *   than not at all.
 */
export function makeSendingDomains(seal: Seal, log: Logger): SendingDomains {
  const open = makeKeyCache(seal, log);
  return async (db, emails) => {
    const names = new Map(emails.map((email) => [keyOf(email), domainOf(email)]));
    const registered = await findSendingDomains(db, [...names.values()]);
    const domains = new Map(registered.map((domain) => [`${domain.org_id} ${domain.name}`, domain]));
    return (email) => {
      const { name } = domainOf(email);
      const domain = domains.get(keyOf(email));
      if (domain?.status !== 'verified') {
        const state = domain ? 'is no longer verified' : 'was deleted';
        return `This email cannot be sent: the domain ${name} ${state}.`;
      }
      const key = open(domain);
      const tracking = { opens: domain.open_tracking, clicks: domain.click_tracking };
      return { signer: key && { domain: name, selector: DKIM_SELECTOR, key }, tracking };
    };
  };
}

function domainOf({ email, outgoing }: DomainUse): { org_id: string; name: string } {
  return { org_id: email.org_id, name: outgoing.from.domain };
}

function keyOf(use: DomainUse): string {
  const { org_id: orgId, name } = domainOf(use);
  return `${orgId} ${name}`;
}

/** Caches decrypted keys: decrypting and parsing a key takes longer than signing with it. */
function makeKeyCache(seal: Seal, log: Logger): (domain: SendingDomain) => KeyObject | null {
  const cache = new LRUCache<string, { readonly sealed: Buffer; readonly key: KeyObject | null }>({
    max: MAX_CACHED_KEYS,
  });
  const read = (sealed: Buffer, domain: SendingDomain): KeyObject | null => {
    try {
      const der = seal.open(sealed, dkimOwner(domain));
      return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    } catch (error) {
      log.error({ domain: domain.id, reason: (error as Error).message }, 'could not read DKIM key');
      return null;
    }
  };
  return (domain) => {
    const sealed = domain.dkim_key;
    if (!sealed) return null;
    const cached = cache.get(domain.id);
    const key = cached?.sealed.equals(sealed) ? cached.key : read(sealed, domain);
    cache.set(domain.id, { sealed, key });
    return key;
  };
}
