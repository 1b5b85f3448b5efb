import { parseMailbox } from '../domain/email/address.ts';
import { ServiceError } from '../domain/errors.ts';
import { parseInstant } from '../domain/instant.ts';
import { isWithin, parseRanges } from '../lib/ip-ranges.ts';
import { domainNames } from '../store/domains/domains.ts';
import type { ApiKey, Preset } from '../store/accounts/keys.ts';
import type { Db } from '../store/postgres/pool.ts';

/** The permissions and restrictions of an API key; null means no restriction. */
export type KeyBounds = Readonly<Pick<ApiKey, 'preset' | 'expires_at'>> & {
  readonly domain_ids: readonly string[] | null;
  readonly allowed_ips: readonly string[] | null;
};

const INCLUDES: Readonly<Record<Preset, readonly Preset[]>> = {
  full_access: ['full_access', 'sending_access', 'read_only'],
  sending_access: ['sending_access'],
  read_only: ['read_only'],
};

/**
 * Refuses a key that would have more permissions than its issuer, expire later, or work from other addresses. The request must
 * repeat the issuer's restrictions. They are not copied, so that the response equals the request.
 * @throws ServiceError insufficient_scope at the first field that exceeds the issuer
 */
export function refuseBroaderKey(issuer: KeyBounds, requested: KeyBounds): void {
  const refuse = (param: string, rule: string): never => {
    throw new ServiceError('insufficient_scope', `exceeds this API key; ${rule}`, param);
  };
  if (!INCLUDES[issuer.preset].includes(requested.preset))
    refuse('preset', 'a key may create keys of its own preset only');

  const domains = findExcess('domain_ids', issuer.domain_ids, requested.domain_ids, (id, allowed) =>
    allowed.includes(id),
  );
  if (domains !== undefined) refuse(domains, 'it may create keys only for the domains it may send from');

  const expires = issuer.expires_at === null ? null : Date.parse(issuer.expires_at);
  const requestedExpires = requested.expires_at === null ? null : parseInstant(requested.expires_at)?.getTime();
  // A malformed time is undefined here; `issueKey` rejects it later.
  if (expires !== null && requestedExpires !== undefined && (requestedExpires === null || requestedExpires > expires)) {
    refuse('expires_at', `must be given, and at most ${issuer.expires_at}`);
  }

  const addresses = findExcess('allowed_ips', issuer.allowed_ips, requested.allowed_ips, (range, allowed) => {
    const [parsed] = parseRanges([range]);
    return parsed !== undefined && isWithin(parsed, parseRanges(allowed));
  });
  if (addresses !== undefined) refuse(addresses, 'must lie within its own addresses');
}

/** Returns the path of the first item that is not allowed, that of the field if `requested` is unrestricted, undefined for none. */
function findExcess(
  field: string,
  allowed: readonly string[] | null,
  requested: readonly string[] | null,
  isAllowed: (item: string, allowed: readonly string[]) => boolean,
): string | undefined {
  if (allowed === null) return undefined;
  if (requested === null) return field;
  const index = requested.findIndex((item) => !isAllowed(item, allowed));
  return index < 0 ? undefined : `${field}.${index}`;
}

/**
 * Refuses changes to emails that are not from the domains of a restricted key.
 * @param domainIds the key's domains
 * @param froms the `from` fields of the emails to change
 * @throws ServiceError insufficient_scope
 */
export async function refuseOtherSenders(
  db: Db,
  orgId: string,
  domainIds: readonly string[],
  froms: readonly string[],
): Promise<void> {
  const names = new Set(await domainNames(db, orgId, domainIds));
  const isOther = (from: string): boolean => {
    const mailbox = parseMailbox(from);
    return typeof mailbox === 'string' || !names.has(mailbox.domain);
  };
  if (froms.some(isOther)) {
    throw new ServiceError('insufficient_scope', 'this API key may change emails from its own domains only');
  }
}
