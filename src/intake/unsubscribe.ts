import { parseMailbox } from '../domain/email/address.ts';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../lib/ids.ts';
import { addressees, recipients } from '../domain/email/outgoing.ts';
import { parseUnsubscribeToken, type UnsubscribeTokens } from '../domain/email/unsubscribe-token.ts';
import { project } from '../projection/emails.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { addSuppressions } from '../store/suppressions/suppressions.ts';
import { findAddressedEmail } from '../store/suppressions/unsubscribes.ts';

/** The recipient of an unsubscribe link. */
interface Subscriber {
  readonly orgId: string;
  readonly emailId: string;
  /** The bare address in lower case. */
  readonly address: string;
  /** The sender domain as an A-label. */
  readonly sender: string;
}

/**
 * Finds the recipient of an unsubscribe link, without changing anything.
 * @throws ServiceError not_found if the token is invalid or its email was deleted
 */
export async function findSubscriber(db: Db, tokens: UnsubscribeTokens, token: string): Promise<Subscriber> {
  const claim = parseUnsubscribeToken(token);
  const email = claim && (await findAddressedEmail(db, claim.emailId));
  if (!email || !tokens.verify({ orgId: email.org_id, ...claim }, token)) throw noSuchLink();
  const recipient = recipients(addressees(email))[claim.position];
  const from = parseMailbox(email.from);
  if (!recipient || typeof from === 'string') throw noSuchLink();
  return { orgId: email.org_id, emailId: email.id, address: recipient.address.toLowerCase(), sender: from.domain };
}

function noSuchLink(): ServiceError {
  return new ServiceError('not_found', 'this link is not valid; use the link in your most recent email');
}

interface UnsubscribeDeps {
  readonly pool: Pool;
  readonly wakeRelay: () => void;
}

/**
 * Unsubscribes a recipient from an organization's marketing email immediately, and records it on the email of the link.
 * Idempotent. If the organization has removed the suppression meanwhile, it is added again.
 */
export async function unsubscribe(deps: UnsubscribeDeps, { orgId, emailId, address }: Subscriber): Promise<void> {
  await transaction(deps.pool, async (client) => {
    await project(client, 'unsubscribed', [{ id: emailId, recipient: address, dedupe_key: `unsubscribed ${address}` }]);
    // Add the suppression even if the email already has this event or its status does not allow the event.
    const entry = { id: newId('sup'), org_id: orgId, email: address, message_id: emailId };
    await addSuppressions(client, [{ ...entry, origin: 'unsubscribe' }]);
  });
  deps.wakeRelay();
}
