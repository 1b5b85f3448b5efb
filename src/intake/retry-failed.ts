import { ServiceError } from '../domain/errors.ts';
import { type FailedEmail, type FailedFilter, listFailedEmails } from '../store/emails/failed.ts';
import { requireOrganization } from '../accounts/organizations.ts';
import { type AgainDeps, sendAgain } from './send-again.ts';

/** Emails that are read at a time. */
const PAGE = 500;

/** What became of emails that were to be sent again. */
export interface RetrySummary {
  readonly matched: number;
  /** Each with the new email that it was sent as. */
  readonly sent: { readonly id: string; readonly sent_as: string }[];
  /** Not sent again: they were already, their content is erased, or a new email like them would be refused. */
  readonly refused: { readonly id: string; readonly reason: string }[];
}

/**
 * Sends emails of an organization again that failed, each as a new email of the same content. One that was sent again within
 * the last 24 hours is not sent twice.
 * @throws ServiceError not_found for the organization
 */
export async function retryFailed(deps: AgainDeps, orgId: string, filter: FailedFilter): Promise<RetrySummary> {
  const summary: RetrySummary = { matched: 0, sent: [], refused: [] };
  const matched = await listAll(deps, orgId, filter);
  for (const { id } of matched) {
    try {
      const { id: sentAs } = await sendAgain(deps, orgId, id, `retry ${id}`);
      summary.sent.push({ id, sent_as: sentAs });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      summary.refused.push({ id, reason: error.message });
    }
  }
  return { ...summary, matched: matched.length };
}

/** The emails that `retryFailed` would send again. */
export async function listAll(
  { pool }: Pick<AgainDeps, 'pool'>,
  orgId: string,
  filter: FailedFilter,
): Promise<FailedEmail[]> {
  await requireOrganization(pool, orgId);
  const emails: FailedEmail[] = [];
  for (;;) {
    const page = await listFailedEmails(pool, orgId, filter, emails.at(-1), PAGE);
    emails.push(...page);
    if (page.length < PAGE) return emails;
  }
}
