import type { Logger } from 'pino';
import { makeSeal, type Seal } from '../lib/seal.ts';
import { deriveKeys, type SecretKeys } from '../lib/secret-key.ts';
import type { Senders } from '../domain/senders/sender-records.ts';
import type { Dns } from '../providers/dns.ts';
import type { PostmarkDomains } from '../providers/postmark/domains.ts';
import type { Pool } from '../store/postgres/pool.ts';

export interface SenderDomainDeps {
  readonly pool: Pool;
  /** Seals private DKIM keys. The associated data is the organization and the domain. */
  readonly seal: Seal;
  readonly dns: Dns;
  readonly senders: Senders;
  /** Undefined if Postmark is not used or its account token is not set. */
  readonly postmark: PostmarkDomains | undefined;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** Seals and opens the private DKIM keys of domains. */
export function dkimSeal(secretKey: SecretKeys): Seal {
  return makeSeal(deriveKeys(secretKey, 'DKIM keys'));
}

/** Returns the associated data that binds a sealed key to its domain. */
export function dkimOwner({ org_id: orgId, id }: { readonly org_id: string; readonly id: string }): string {
  return `${orgId} ${id}`;
}
