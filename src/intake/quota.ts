import { noOrganization, ServiceError } from '../domain/errors.ts';
import { formatNumber } from '../lib/text.ts';
import type { Db } from '../store/postgres/pool.ts';
import { findLeftOfQuota, setQuota, type Usage, usage } from '../store/limits/quota.ts';

/** Creates the error for an exceeded quota. @param cost what the refused request would take from the quota (`costOf`) */
export async function quotaExceeded(db: Db, orgId: string, cost: number): Promise<ServiceError> {
  const { monthly, used, resets_at, resets_in } = await requireUsage(db, orgId);
  const remaining = Math.max(0, (monthly ?? used) - used);
  const message =
    `the quota of ${formatNumber(monthly ?? 0)} emails a month leaves ${formatNumber(remaining)}, ` +
    `and this takes ${formatNumber(cost)}; the next month begins at ${resets_at}`;
  return new ServiceError('quota_exceeded', message, undefined, resets_in);
}

/** @throws ServiceError quota_exceeded if the quota leaves fewer emails than `cost` */
export async function requireQuota(db: Db, orgId: string, cost: number): Promise<void> {
  const left = await findLeftOfQuota(db, orgId);
  if (left !== null && left < cost) throw await quotaExceeded(db, orgId, cost);
}

/**
 * Sets the quota of an organization for the operator.
 * @param monthly emails per calendar month (UTC); 0 allows none, null means no limit
 * @throws ServiceError not_found
 */
export async function changeQuota(db: Db, orgId: string, monthly: number | null): Promise<Usage> {
  await setQuota(db, orgId, monthly);
  return requireUsage(db, orgId);
}

/** @throws ServiceError not_found */
async function requireUsage(db: Db, orgId: string): Promise<Usage> {
  const current = await usage(db, orgId);
  if (!current) throw noOrganization(orgId);
  return current;
}
