import { noOrganization } from '../domain/errors.ts';
import { setBodyRetention } from '../store/emails/content-erasure.ts';
import type { Db } from '../store/postgres/pool.ts';

/**
 * Sets the retention of an organization for the operator.
 * @param days 0 is forever, null is the setting `BODY_RETENTION_DAYS`
 * @throws ServiceError not_found
 */
export async function changeBodyRetention(db: Db, orgId: string, days: number | null): Promise<void> {
  if (!(await setBodyRetention(db, orgId, days))) throw noOrganization(orgId);
}
