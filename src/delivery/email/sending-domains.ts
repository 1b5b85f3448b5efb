import { createPrivateKey, type KeyObject } from 'node:crypto';
import type { Logger } from 'pino';
import { DKIM_SELECTOR, type DkimSigner } from '../../domain/senders/dkim.ts';
import type { Seal } from '../../lib/seal.ts';
import { dkimOwner } from '../../sender-domains/deps.ts';
import { findSendingDomains, type SendingDomain } from '../../store/domains/domains.ts';
import type { Db } from '../../store/postgres/pool.ts';

/** As much of an email as tells its domain. */
interface Leaving {
  readonly email: { readonly org_id: string };
  readonly outgoing: { readonly from: { readonly domain: string } };
}

/** What an email's domain has to say: what to sign it with, or a sentence why it may not leave. */
type Permission = { readonly signer: DkimSigner | null } | string;

/**
 * Looks at the domains of many emails in one statement: what was accepted weeks ago may be from a domain that its
 * organization has given up since, and that is somebody else's now.
 * @returns what it found, to be asked about each of them
 */
export type SendingDomains = (db: Db, leaving: readonly Leaving[]) => Promise<(each: Leaving) => Permission>;

/** Keys that are kept open; each takes some kilobytes. */
const KEPT_KEYS = 1_000;

/**
 * @param seal opens the private keys of domains. One that it does not open, since `SECRET_KEY` is another one now, signs
 *   nothing: that email is unsigned is better than that none leaves.
 */
export function makeSendingDomains(seal: Seal, log: Logger): SendingDomains {
  const open = makeKeyRing(seal, log);
  return async (db, leaving) => {
    const wishes = new Map(leaving.map((each) => [keyOf(each), wishOf(each)]));
    const found = await findSendingDomains(db, [...wishes.values()]);
    const domains = new Map(found.map((domain) => [`${domain.org_id} ${domain.name}`, domain]));
    return (each) => {
      const { name } = wishOf(each);
      const domain = domains.get(keyOf(each));
      if (domain?.status !== 'verified') {
        const state = domain ? 'is not verified any more' : 'was deleted';
        return `This email cannot be sent: the domain ${name} ${state}.`;
      }
      const key = open(domain);
      return { signer: key && { domain: name, selector: DKIM_SELECTOR, key } };
    };
  };
}

function wishOf({ email, outgoing }: Leaving): { org_id: string; name: string } {
  return { org_id: email.org_id, name: outgoing.from.domain };
}

function keyOf(each: Leaving): string {
  const { org_id: orgId, name } = wishOf(each);
  return `${orgId} ${name}`;
}

/** Opens keys, and keeps those that were opened last: to open and to read one takes longer than to sign with it. */
function makeKeyRing(seal: Seal, log: Logger): (domain: SendingDomain) => KeyObject | null {
  const ring = new Map<string, { readonly sealed: Buffer; readonly key: KeyObject | null }>();
  const read = (sealed: Buffer, domain: SendingDomain): KeyObject | null => {
    try {
      const der = seal.open(sealed, dkimOwner(domain));
      return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    } catch (error) {
      log.error({ domain: domain.id, reason: (error as Error).message }, 'the DKIM key of a domain cannot be read');
      return null;
    }
  };
  return (domain) => {
    const sealed = domain.dkim_key;
    if (!sealed) return null;
    const kept = ring.get(domain.id);
    ring.delete(domain.id);
    const key = kept?.sealed.equals(sealed) ? kept.key : read(sealed, domain);
    ring.set(domain.id, { sealed, key });
    if (ring.size > KEPT_KEYS) ring.delete(ring.keys().next().value as string);
    return key;
  };
}
