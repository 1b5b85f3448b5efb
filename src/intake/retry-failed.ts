import { ServiceError } from '../domain/errors.ts';
import { FileStoreUnavailable } from '../store/files/file-store.ts';
import { type FailedEmail, type FailedFilter, listFailedEmails } from '../store/emails/failed.ts';
import { readAll } from '../store/postgres/page.ts';
import { requireOrganization } from '../accounts/organizations.ts';
import { type ResendDeps, resendEmail } from './resend.ts';

interface RetrySummary {
  readonly matched: number;
  /** Resent emails, with the id of the new email. */
  readonly sent: { readonly id: string; readonly sent_as: string }[];
  /**
   * Emails that were not resent: they were resent or reported meanwhile, their content was erased, their files cannot be read, or the
   * new email was refused.
   */
  readonly refused: { readonly id: string; readonly reason: string }[];
}

/**
 * Resends failed emails of an organization, each as a new email with the same content. Leaves out emails that were resent before;
 * the new email can be resent when it fails too. Refuses those that were resent or reported since they were listed.
 * @throws ServiceError not_found for the organization
 */
export async function retryFailed(deps: ResendDeps, orgId: string, filter: FailedFilter): Promise<RetrySummary> {
  const matched = await listRetryable(deps, orgId, filter);
  const summary: RetrySummary = { matched: matched.length, sent: [], refused: [] };
  for (const { id } of matched) {
    try {
      const { id: sentAs } = await resendEmail(deps, orgId, { id, status: filter.status }, `retry ${id}`);
      summary.sent.push({ id, sent_as: sentAs });
    } catch (error) {
      if (!(error instanceof ServiceError || error instanceof FileStoreUnavailable)) throw error;
      summary.refused.push({ id, reason: error.message });
    }
  }
  return summary;
}

/** Lists the emails that `retryFailed` would resend. */
export async function listRetryable(
  { pool }: Pick<ResendDeps, 'pool'>,
  orgId: string,
  filter: FailedFilter,
): Promise<FailedEmail[]> {
  await requireOrganization(pool, orgId);
  return readAll((after, limit) => listFailedEmails(pool, orgId, filter, after, limit));
}
