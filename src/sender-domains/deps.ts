import type { Logger } from 'pino';
import { makeSeal, type Seal } from '../lib/seal.ts';
import { deriveKeys, type SecretKeys } from '../lib/secret-key.ts';
import type { Senders } from '../domain/senders/sender-records.ts';
import type { Dns } from '../providers/dns.ts';
import type { PostmarkDomains } from '../providers/postmark/domains.ts';
import type { Pool } from '../store/postgres/pool.ts';

/** What domains are checked with. */
export interface SenderDomainDeps {
  readonly pool: Pool;
  /** Closes and opens private DKIM keys; each is about its organization and its domain. */
  readonly seal: Seal;
  readonly dns: Dns;
  readonly senders: Senders;
  /** Undefined where Postmark does not carry our email, or its account token is not known. */
  readonly postmark: PostmarkDomains | undefined;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** What seals and opens the private DKIM keys of domains. */
export function dkimSeal(secretKey: SecretKeys): Seal {
  return makeSeal(deriveKeys(secretKey, 'DKIM keys'));
}

/** Whose key it is that is sealed. */
export function dkimOwner({ org_id: orgId, id }: { readonly org_id: string; readonly id: string }): string {
  return `${orgId} ${id}`;
}
