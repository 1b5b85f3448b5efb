import { hasAccountLink, insertAccountLink, isAccountEmail } from '../../domain/email/account-link.ts';
import { findAccountLinks } from '../../store/emails/account-links.ts';
import type { Db } from '../../store/postgres/pool.ts';
import type { Failure } from '../contract.ts';
import type { EmailDeps } from './contract.ts';
import type { OpenedEmail } from './recipients.ts';

/**
 * Inserts the links of emails about accounts. Other emails are unchanged, also if a customer wrote the placeholder.
 * @returns the emails, and the failures of those without a usable link
 */
export async function insertAccountLinks(
  { accountLinks, log }: Pick<EmailDeps, 'accountLinks' | 'log'>,
  client: Db,
  emails: readonly OpenedEmail[],
): Promise<{ emails: readonly OpenedEmail[]; failed: readonly Failure[] }> {
  const ids = emails.filter(({ outgoing }) => hasAccountLink(outgoing)).map(({ email }) => email.id);
  if (ids.length === 0) return { emails, failed: [] };
  const links = new Map((await findAccountLinks(client, ids)).map((link) => [link.id, link]));
  const failed: Failure[] = [];
  const complete = emails.flatMap((each): OpenedEmail[] => {
    const { id, org_id: orgId } = each.email;
    const link = links.get(id);
    if (!link?.sealed) {
      if (!link || !isAccountEmail(each.outgoing, link.has_api_key)) return [each];
      failed.push({ id, error: 'This email cannot be sent: its link has expired.' });
      return [];
    }
    try {
      return [{ ...each, outgoing: insertAccountLink(each.outgoing, accountLinks.open(link.sealed, id).toString()) }];
    } catch (error) {
      log.error({ err: error, email: id, org: orgId }, 'could not decrypt the link of an email');
      failed.push({ id, error: 'This email cannot be sent: its link cannot be decrypted.' });
      return [];
    }
  });
  return { emails: complete, failed };
}
