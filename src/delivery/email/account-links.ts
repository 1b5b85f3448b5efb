import { hasAccountLink, insertAccountLink } from '../../domain/email/account-link.ts';
import { findAccountLinks } from '../../store/emails/account-links.ts';
import type { Db } from '../../store/postgres/pool.ts';
import type { EmailDeps } from './contract.ts';
import type { OpenedEmail } from './recipients.ts';

/**
 * Inserts the links of emails about accounts. Emails without a stored link are unchanged, also if a customer wrote the
 * placeholder.
 * @returns the emails, and the ids of those whose link cannot be decrypted
 */
export async function insertAccountLinks(
  { accountLinks, log }: Pick<EmailDeps, 'accountLinks' | 'log'>,
  client: Db,
  emails: readonly OpenedEmail[],
): Promise<{ emails: readonly OpenedEmail[]; unreadable: readonly string[] }> {
  const ids = emails.filter(({ outgoing }) => hasAccountLink(outgoing)).map(({ email }) => email.id);
  if (ids.length === 0) return { emails, unreadable: [] };
  const links = new Map((await findAccountLinks(client, ids)).map(({ id, sealed }) => [id, sealed]));
  const unreadable: string[] = [];
  const complete = emails.flatMap((each): OpenedEmail[] => {
    const { id, org_id: orgId } = each.email;
    const sealed = links.get(id);
    if (!sealed) return [each];
    try {
      return [{ ...each, outgoing: insertAccountLink(each.outgoing, accountLinks.open(sealed, id).toString()) }];
    } catch (error) {
      log.error({ err: error, email: id, org: orgId }, 'could not decrypt the link of an email');
      unreadable.push(id);
      return [];
    }
  });
  return { emails: complete, unreadable };
}
