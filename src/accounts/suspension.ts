import { noOrganization, refuseProblem, ServiceError } from '../domain/errors.ts';
import { characters, controlProblem } from '../lib/text.ts';
import type { Db } from '../store/postgres/pool.ts';
import { resume, suspend, type Suspension } from '../store/accounts/suspension.ts';

/** The maximum length of a reason, because the dashboard shows it on every page. */
const MAX_REASON_LENGTH = 500;

export function organizationSuspended(): ServiceError {
  return new ServiceError(
    'insufficient_scope',
    'this organization is suspended and may not send; the operator of this service can resume it',
  );
}

/**
 * Suspends an organization: requests to send are refused, and accepted messages stay pending.
 * @param reason shown to its members; null for none
 * @throws ServiceError not_found, or validation_error for the reason
 */
export async function suspendOrganization(
  db: Db,
  orgId: string,
  reason: string | null,
): Promise<Suspension & { id: string }> {
  if (reason !== null) refuseProblem(reasonProblem(reason), 'reason');
  return withId(orgId, await suspend(db, orgId, reason));
}

/**
 * Resumes a suspended organization. Pending messages are sent.
 * @throws ServiceError not_found
 */
export async function resumeOrganization(db: Db, orgId: string): Promise<Suspension & { id: string }> {
  return withId(orgId, await resume(db, orgId));
}

function reasonProblem(reason: string): string | undefined {
  if (reason.trim() === '') return 'is empty; leave it out to give no reason';
  if (characters(reason) > MAX_REASON_LENGTH) return `is too long; at most ${MAX_REASON_LENGTH} characters are allowed`;
  return controlProblem(reason);
}

function withId(orgId: string, suspension: Suspension | undefined): Suspension & { id: string } {
  if (!suspension) throw noOrganization(orgId);
  return { id: orgId, ...suspension };
}
