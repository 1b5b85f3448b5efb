import { groupBy } from '../../lib/group.ts';
import { personalize } from '../../domain/email/marketing.ts';
import { type OutgoingEmail, recipients, toCopy } from '../../domain/email/outgoing.ts';
import { project } from '../../projection/emails.ts';
import type { LockedEmail } from '../../store/emails/attempts.ts';
import { noteSuppressed, prepareCopies } from '../../store/emails/recipients.ts';
import type { Db } from '../../store/postgres/pool.ts';
import { findSuppressed } from '../../store/suppressions/suppressions.ts';
import type { EmailDeps, MemberResult } from './contract.ts';
import { endCopied } from './copies.ts';

/** An email that may be sent, as it was accepted. */
export interface Readable {
  readonly email: LockedEmail;
  readonly outgoing: OutgoingEmail;
  /** Whether it was tried before. */
  readonly tried: boolean;
}

/**
 * An email or one of its copies before its recipient's unsubscribe link is in its bodies. All copies of an email refer to
 * the same bodies, so that many of them take no memory until `toMessage` makes a text of its own for each.
 */
export interface Copy extends OutgoingEmail {
  /** Of marketing emails. */
  readonly unsubscribeUrl: string | null;
}

/** The text of one copy, as large as the email. Make it when it is about to be sent. */
export function toMessage({ unsubscribeUrl, ...email }: Copy): OutgoingEmail {
  return unsubscribeUrl === null ? email : personalize(email, unsubscribeUrl);
}

/** What of an email is to be sent: itself, or of a marketing email to several a copy for each that is still to get one. */
export interface Sendable {
  readonly email: LockedEmail;
  readonly outgoing: OutgoingEmail;
  readonly copies: readonly Copy[];
}

/**
 * Leaves out the recipients on the organization's suppression list, those that unsubscribed from marketing email as
 * well, and makes a copy of such an email for each of its recipients. The caller holds the emails' rows.
 * @returns what is to be sent, and what became of emails of which nothing is
 */
export async function chooseRecipients(
  deps: EmailDeps,
  client: Db,
  emails: readonly Readable[],
): Promise<{ sendable: Sendable[]; ended: MemberResult[] }> {
  const isSuppressed = await suppressionOf(deps, client, emails);
  const suppressed: string[] = [];
  const whole: Sendable[] = [];
  const copied: Readable[] = [];
  const leftOut: { email_id: string; recipient: string }[] = [];
  for (const readable of emails) {
    const { email, outgoing, tried } = readable;
    const stays = ({ address }: { address: string }) => !isSuppressed(email, address);
    const isCopied = email.marketing && recipients(outgoing).length > 1;
    // Once some copies may be out, it is each recipient for himself.
    const ends = !(isCopied && tried) && !outgoing.to.some(stays);
    if (ends) suppressed.push(email.id);
    else if (isCopied) copied.push(readable);
    else whole.push({ email, outgoing, copies: [toWhole(deps, email, outgoing, stays)] });
    if (ends || !isCopied) {
      const dropped = recipients(outgoing).filter((mailbox) => !stays(mailbox));
      leftOut.push(...dropped.map(({ address }) => ({ email_id: email.id, recipient: address.toLowerCase() })));
    }
  }
  await noteSuppressed(client, leftOut);
  await project(
    client,
    'suppressed',
    suppressed.map((id) => ({ id })),
  );
  const copies = await makeCopies(deps, client, copied, isSuppressed);
  // All that were still to get it have been suppressed meanwhile.
  const done = copies.filter((sendable) => sendable.copies.length === 0).map(({ email }) => email.id);
  const statuses = await endCopied(client, done);
  return {
    sendable: [...whole, ...copies.filter((sendable) => sendable.copies.length > 0)],
    ended: [
      ...suppressed.map((id): MemberResult => ({ id, state: 'ended', status: 'suppressed' })),
      ...done.map((id): MemberResult => ({ id, state: 'ended', status: statuses.get(id) ?? 'suppressed' })),
    ],
  };
}

type IsSuppressed = (email: LockedEmail, address: string) => boolean;

async function suppressionOf(deps: EmailDeps, client: Db, emails: readonly Readable[]): Promise<IsSuppressed> {
  const requested: { org_id: string; email: string; hash: Buffer | undefined }[] = [];
  // One look-up of the key for each organization, not for each email.
  for (const [orgId, own] of groupBy(emails, ({ email }) => email.org_id)) {
    const addresses = own.flatMap(({ outgoing }) => recipients(outgoing).map(({ address }) => address.toLowerCase()));
    const hashes = await deps.contents.hashAddresses(client, orgId, addresses);
    requested.push(...addresses.map((address, i) => ({ org_id: orgId, email: address, hash: hashes?.[i] })));
  }
  const found = await findSuppressed(client, requested);
  const standings = new Map(found.map(({ org_id, email, all }) => [`${org_id} ${email}`, all]));
  return ({ org_id, marketing }, address) => {
    const all = standings.get(`${org_id} ${address.toLowerCase()}`);
    return all !== undefined && (all || marketing);
  };
}

function toWhole(
  deps: EmailDeps,
  { marketing, org_id }: LockedEmail,
  outgoing: OutgoingEmail,
  stays: (mailbox: { address: string }) => boolean,
): Copy {
  const { id, to, cc, bcc } = outgoing;
  const rest = { ...outgoing, to: to.filter(stays), cc: cc.filter(stays), bcc: bcc.filter(stays) };
  return { ...rest, unsubscribeUrl: marketing ? deps.unsubscribeUrl(org_id, id, 0) : null };
}

async function makeCopies(
  deps: EmailDeps,
  client: Db,
  emails: readonly Readable[],
  isSuppressed: IsSuppressed,
): Promise<Sendable[]> {
  const wishes = emails.flatMap(({ email, outgoing }) =>
    recipients(outgoing).map(({ address }) => ({
      email_id: email.id,
      recipient: address.toLowerCase(),
      suppressed: isSuppressed(email, address),
    })),
  );
  const waiting = await prepareCopies(client, wishes);
  const isWaiting = new Set(waiting.map(({ email_id, recipient }) => `${email_id} ${recipient}`));
  return emails.map(({ email, outgoing }) => ({
    email,
    outgoing,
    copies: recipients(outgoing).flatMap(({ address }, index): Copy[] => {
      if (!isWaiting.has(`${email.id} ${address.toLowerCase()}`)) return [];
      return [{ ...toCopy(outgoing, index), unsubscribeUrl: deps.unsubscribeUrl(email.org_id, email.id, index) }];
    }),
  }));
}
