import type { Config } from '../../config.ts';
import type { OrganizationLimits } from '../../accounts/organization-limits.ts';

const BYTES_PER_MB = 1_048_576;

/** The limits of every organization, from the settings `LIMIT_…`. */
export function organizationLimits(config: Config): OrganizationLimits {
  return {
    endpoints: config.LIMIT_ENDPOINTS,
    domains: config.LIMIT_DOMAINS,
    keys: config.LIMIT_KEYS,
    numbers: config.LIMIT_NUMBERS,
    members: config.LIMIT_MEMBERS,
    tagPairs: config.LIMIT_TAG_PAIRS,
    storedBytes: config.LIMIT_STORED_MB * BYTES_PER_MB,
  };
}
