import { parseMailbox } from '../domain/email/address.ts';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../domain/ids.ts';
import { addressees, recipients } from '../domain/email/outgoing.ts';
import { claimOf, type UnsubscribeTokens } from '../domain/email/unsubscribe-token.ts';
import { project } from '../projection/emails.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { addSuppressions } from '../store/suppressions/suppressions.ts';
import { findAddressedEmail } from '../store/suppressions/unsubscribes.ts';

/** Whom an unsubscribe link is of. */
export interface Subscriber {
  readonly orgId: string;
  readonly emailId: string;
  /** The bare address in lower case. */
  readonly address: string;
  /** Of whom the emails are: a domain as an A-label. */
  readonly sender: string;
}

/**
 * Finds out whom a link is of. Changes nothing.
 * @throws ServiceError not_found for a token that was not made here, or whose email is gone
 */
export async function findSubscriber(db: Db, tokens: UnsubscribeTokens, token: string): Promise<Subscriber> {
  const claim = claimOf(token);
  const email = claim && (await findAddressedEmail(db, claim.emailId));
  if (!email || !tokens.isOf({ orgId: email.org_id, ...claim }, token)) throw noSuchLink();
  const recipient = recipients(addressees(email))[claim.position];
  const from = parseMailbox(email.from);
  if (!recipient || typeof from === 'string') throw noSuchLink();
  return { orgId: email.org_id, emailId: email.id, address: recipient.address.toLowerCase(), sender: from.domain };
}

function noSuchLink(): ServiceError {
  return new ServiceError('not_found', 'this link leads nowhere; use the one of the newest email');
}

interface UnsubscribeDeps {
  readonly pool: Pool;
  readonly wakeRelay: () => void;
}

/**
 * Takes somebody off an organization's marketing email, at once, and notes it on the email whose link he followed.
 * Repeated, it changes nothing, unless the organization has taken him off its list in between: then he is put there again.
 */
export async function unsubscribe(deps: UnsubscribeDeps, { orgId, emailId, address }: Subscriber): Promise<void> {
  await transaction(deps.pool, async (client) => {
    await project(client, 'unsubscribed', [{ id: emailId, recipient: address, dedupe_key: `unsubscribed ${address}` }]);
    // An email that has noted it before, or ended in a status that notes nothing, is no reason to go on mailing.
    const now = Date.now();
    await addSuppressions(client, [
      {
        id: newId('sup', now),
        event_id: newId('evt', now),
        org_id: orgId,
        email: address,
        origin: 'unsubscribe',
        message_id: emailId,
      },
    ]);
  });
  deps.wakeRelay();
}
