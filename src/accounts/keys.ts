import { randomBytes } from 'node:crypto';
import { digest } from '../lib/digest.ts';
import { noOrganization, notFound, requireFound, ServiceError } from '../domain/errors.ts';
import { newId } from '../lib/ids.ts';
import { parseInstant, SCHEDULE_PROBLEMS } from '../domain/instant.ts';
import { organizationExists } from '../store/accounts/organizations.ts';
import { findDomains } from '../store/domains/domains.ts';
import {
  insertKey,
  type KeySummary,
  missingDomains,
  renameKey,
  type Preset,
  revokeKey,
  revokeKeyOf,
  showKey,
} from '../store/accounts/keys.ts';
import type { Db } from '../store/postgres/pool.ts';
import { domainName } from './domain-name.ts';
import { type KeyBounds, refuseBroaderKey } from './key-bounds.ts';

const API_KEY = /^sw_live_([0-9a-z]{26})_([0-9a-f]{64})$/;

/** Splits an API key into id and secret. Returns undefined for text that is not an API key. */
export function parseApiKey(apiKey: string): { id: string; secret: string } | undefined {
  const match = API_KEY.exec(apiKey);
  return match ? { id: `key_${match[1]}`, secret: match[2] as string } : undefined;
}

/** A request for a key. Absent and null fields do not restrict the key. */
interface KeyRequest {
  readonly preset: Preset;
  readonly name?: string | null;
  readonly domain_ids?: readonly string[] | null;
  /** A time in the future. */
  readonly expires_at?: string | null;
  readonly allowed_ips?: readonly string[] | null;
}

export type IssuedKey = KeySummary & { readonly api_key: string };

/**
 * Creates an API key. The response contains the only copy.
 * @param issuer the key that requests it and limits its permissions; null for an owner or the operator
 * @throws ServiceError validation_error for an unknown domain or a time in the past; insufficient_scope for permissions that the
 * issuer does not have
 */
export async function issueKey(
  db: Db,
  orgId: string,
  { preset, name = null, domain_ids = null, expires_at = null, allowed_ips = null }: KeyRequest,
  issuer: KeyBounds | null = null,
): Promise<IssuedKey> {
  if (issuer) refuseBroaderKey(issuer, { preset, domain_ids, expires_at, allowed_ips });
  if (domain_ids) await refuseUnknown(db, orgId, domain_ids);
  const id = newId('key');
  const secret = randomBytes(32).toString('hex');
  const key = await insertKey(db, {
    id,
    org_id: orgId,
    name,
    preset,
    domain_ids: domain_ids && [...new Set(domain_ids)],
    expires_at: expires_at === null ? null : instant(expires_at),
    allowed_ips: allowed_ips && [...allowed_ips],
    sha256: digest(secret),
  });
  if (!key) throw new ServiceError('validation_error', SCHEDULE_PROBLEMS.past, 'expires_at');
  return { ...key, api_key: `sw_live_${id.slice('key_'.length)}_${secret}` };
}

function instant(text: string): string {
  const date = parseInstant(text);
  if (!date) throw new ServiceError('validation_error', SCHEDULE_PROBLEMS.form, 'expires_at');
  return date.toISOString();
}

async function refuseUnknown(db: Db, orgId: string, domainIds: readonly string[]): Promise<void> {
  const missing = new Set(await missingDomains(db, orgId, domainIds));
  const index = domainIds.findIndex((id) => missing.has(id));
  if (index >= 0) throw new ServiceError('validation_error', 'there is no domain with this id', `domain_ids.${index}`);
}

/**
 * Creates an API key for the operator.
 * @param domains names of the only domains that it may send from; an empty list allows all
 * @throws ServiceError not_found for an unknown organization, domain_not_found for an unknown domain
 */
export async function issueKeyForOperator(
  db: Db,
  orgId: string,
  preset: Preset,
  domains: readonly string[],
): Promise<Pick<IssuedKey, 'id' | 'api_key'>> {
  if (!(await organizationExists(db, orgId))) throw noOrganization(orgId);
  const names = domains.map((domain) => domainName(domain, 'domain'));
  const matches = await findDomains(db, orgId, names);
  const missing = names.find((name) => !matches.some((domain) => domain.name === name));
  if (missing) throw new ServiceError('domain_not_found', `the organization has no domain ${missing}`, 'domain');
  const domain_ids = domains.length > 0 ? matches.map(({ id }) => id) : null;
  const { id, api_key } = await issueKey(db, orgId, { preset, domain_ids });
  return { id, api_key };
}

/**
 * Finds a key.
 * @param within the domains of the requesting key, which finds only keys that are restricted to these
 * @throws ServiceError not_found, also for a revoked key
 */
export async function requireKey(
  db: Db,
  orgId: string,
  id: string,
  within: readonly string[] | null = null,
): Promise<KeySummary> {
  return requireFound(await showKey(db, orgId, id, within), 'API key');
}

/** Renames a key. @param name null removes the name @throws ServiceError not_found */
export async function changeKeyName(db: Db, orgId: string, id: string, name: string | null): Promise<void> {
  if (!(await renameKey(db, orgId, id, name))) throw notFound('API key');
}

/**
 * Revokes a key of an organization. Every process refuses it within a second. A key can revoke itself.
 * @param within the domains of the requesting key, which finds only keys that are restricted to these
 * @throws ServiceError not_found
 */
export async function removeKey(
  db: Db,
  orgId: string,
  id: string,
  within: readonly string[] | null = null,
): Promise<void> {
  if (!(await revokeKeyOf(db, orgId, id, within))) throw notFound('API key');
}

/**
 * Revokes a key for the operator.
 * @param key its id, or the API key itself
 * @throws ServiceError not_found
 */
export async function revokeKeyForOperator(db: Db, key: string): Promise<{ id: string }> {
  const id = parseApiKey(key)?.id ?? key;
  if (!(await revokeKey(db, id))) throw new ServiceError('not_found', 'there is no such key', 'key');
  return { id };
}
