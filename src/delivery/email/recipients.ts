import { groupBy } from '../../lib/group.ts';
import { personalize } from '../../domain/email/marketing.ts';
import { type OutgoingEmail, recipients, toCopy } from '../../domain/email/outgoing.ts';
import { SUPPRESSED_AFTER_CALL_ERROR } from '../../domain/email/suppression.ts';
import { project } from '../../projection/emails.ts';
import type { Attempt, LockedEmail } from '../../store/emails/attempts.ts';
import {
  deleteUnsentCopies,
  prepareCopies,
  recipientsOfDivided,
  recordSuppressed,
  type UnsentCopy,
} from '../../store/emails/recipients.ts';
import type { Db } from '../../store/postgres/pool.ts';
import { findSuppressed } from '../../store/suppressions/suppressions.ts';
import type { MemberResult } from '../contract.ts';
import type { Copy, EmailDeps } from './contract.ts';
import { endCopied } from './copies.ts';

/** An email with its decrypted content, before suppressed recipients are removed. */
export interface OpenedEmail {
  readonly email: LockedEmail;
  readonly outgoing: OutgoingEmail;
  /** Its last attempt, if there is one. */
  readonly attempt: Attempt | undefined;
}

/** Creates the text of one copy, which is as large as the email; call it just before sending. */
export function toMessage(copy: Copy): OutgoingEmail {
  return copy.unsubscribeUrl === null ? copy : personalize(copy, copy.unsubscribeUrl);
}

/**
 * An email with what is to be sent of it: itself, remaining copies of a marketing email with several recipients, or the email with an
 * envelope of its deferred recipients.
 */
export interface Sendable {
  readonly email: LockedEmail;
  readonly outgoing: OutgoingEmail;
  readonly copies: readonly Copy[];
}

/**
 * Removes recipients on the organization's suppression list (for marketing email also unsubscribed ones), and creates a copy
 * of a marketing email for each of its recipients. The caller has locked the emails' rows.
 * @returns the emails to send, and the results of emails without recipients
 */
export async function chooseRecipients(
  deps: EmailDeps,
  client: Db,
  emails: readonly OpenedEmail[],
  isSuppressed: IsSuppressed,
): Promise<{ sendable: Sendable[]; ended: MemberResult[] }> {
  const suppressed: string[] = [];
  const failed: string[] = [];
  const whole: Sendable[] = [];
  const copied: OpenedEmail[] = [];
  const leftOut: { email_id: string; recipient: string; error?: string }[] = [];
  for (const opened of emails) {
    const { email, outgoing, attempt } = opened;
    const stays = ({ address }: { address: string }) => !isSuppressed(email, address);
    const isCopied = isDivided(email) || (email.marketing && recipients(outgoing).length > 1);
    // After an attempt, some copies may be sent, so that only single copies can be suppressed.
    const ends = !(isCopied && attempt) && !outgoing.to.some(stays);
    if (ends) (attempt?.mayBeDelivered ? failed : suppressed).push(email.id);
    else if (isCopied) copied.push(opened);
    else whole.push({ email, outgoing, copies: [toSingleMessage(deps, email, outgoing, stays)] });
    if (ends || !isCopied) {
      const dropped = recipients(outgoing).filter((mailbox) => !stays(mailbox));
      const ending = { email_id: email.id, ...(attempt?.mayBeDelivered && { error: SUPPRESSED_AFTER_CALL_ERROR }) };
      leftOut.push(...dropped.map(({ address }) => ({ ...ending, recipient: address.toLowerCase() })));
    }
  }
  // Copies were prepared if an earlier claim found all providers paused.
  await deleteUnsentCopies(client, suppressed);
  await recordSuppressed(client, leftOut);
  await project(
    client,
    'suppressed',
    suppressed.map((id) => ({ id })),
  );
  await project(
    client,
    'failed',
    failed.map((id) => ({ id, error: SUPPRESSED_AFTER_CALL_ERROR })),
  );
  const copies = await makeCopies(deps, client, copied, isSuppressed);
  // All remaining recipients have been suppressed since the last attempt.
  const done = copies.filter((sendable) => sendable.copies.length === 0).map(({ email }) => email.id);
  const statuses = await endCopied(client, done);
  return {
    sendable: [...whole, ...copies.filter((sendable) => sendable.copies.length > 0)],
    ended: [
      ...suppressed.map((id): MemberResult => ({ id, state: 'ended', status: 'suppressed' })),
      ...failed.map((id): MemberResult => ({ id, state: 'ended', status: 'failed' })),
      ...done.map((id): MemberResult => ({ id, state: 'ended', status: statuses.get(id) ?? 'suppressed' })),
    ],
  };
}

type IsSuppressed = (email: LockedEmail, address: string) => boolean;

/** Reads which recipients of emails are on their organizations' suppression lists. */
export async function suppressionOf(
  deps: EmailDeps,
  client: Db,
  emails: readonly OpenedEmail[],
): Promise<IsSuppressed> {
  const requested: { org_id: string; email: string; hash: Buffer | undefined }[] = [];
  // One key look-up per organization, not per email.
  for (const [orgId, own] of groupBy(emails, ({ email }) => email.org_id)) {
    const addresses = own.flatMap(({ outgoing }) => recipients(outgoing).map(({ address }) => address.toLowerCase()));
    const hashes = await deps.contents.hashAddresses(client, orgId, addresses);
    requested.push(...addresses.map((address, i) => ({ org_id: orgId, email: address, hash: hashes?.[i] })));
  }
  const entries = await findSuppressed(client, requested);
  const isForAllEmail = new Map(entries.map(({ org_id, email, all }) => [`${org_id} ${email}`, all]));
  return ({ org_id, marketing }, address) => {
    const all = isForAllEmail.get(`${org_id} ${address.toLowerCase()}`);
    return all !== undefined && (all || marketing);
  };
}

function toSingleMessage(
  deps: EmailDeps,
  { marketing, org_id }: LockedEmail,
  outgoing: OutgoingEmail,
  stays: (mailbox: { address: string }) => boolean,
): Copy {
  const { id, to, cc, bcc } = outgoing;
  const positions = recipients(outgoing).flatMap((mailbox, position) => (stays(mailbox) ? position : []));
  const [recipient = null] = positions.length === 1 ? positions : [];
  return Object.assign({}, outgoing, {
    to: to.filter(stays),
    cc: cc.filter(stays),
    bcc: bcc.filter(stays),
    recipient,
    unsubscribeUrl: marketing ? deps.unsubscribeUrl(org_id, id, 0) : null,
  });
}

async function makeCopies(
  deps: EmailDeps,
  client: Db,
  emails: readonly OpenedEmail[],
  isSuppressed: IsSuppressed,
): Promise<Sendable[]> {
  const ids = emails.flatMap(({ email }) => (isDivided(email) ? email.id : []));
  const divided = groupBy(await recipientsOfDivided(client, ids), ({ email_id }) => email_id);
  const keysOf = (id: string, field: 'is_queued' | 'is_left_out') =>
    new Set(divided.get(id)?.flatMap((each) => (each[field] ? each.recipient : [])));
  const requested = emails.flatMap(({ email, outgoing }) => {
    const queued = isDivided(email) ? keysOf(email.id, 'is_queued') : undefined;
    const unsent = recipients(outgoing).filter(({ address }) => queued?.has(address.toLowerCase()) ?? true);
    return unsent.map(({ address }) => ({
      email_id: email.id,
      recipient: address.toLowerCase(),
      suppressed: isSuppressed(email, address),
    }));
  });
  const unsent = await prepareCopies(client, requested);
  const unsentCopies = new Map(unsent.map((copy) => [`${copy.email_id} ${copy.recipient}`, copy]));
  return emails.map(({ email, outgoing }) => {
    const positions = nextPositions(outgoing, unsentCopies);
    if (isDivided(email)) {
      const copies = positions.length === 0 ? [] : [toRest(outgoing, positions, keysOf(email.id, 'is_left_out'))];
      return { email, outgoing, copies };
    }
    const copies = positions.map((position) => {
      const unsubscribeUrl = deps.unsubscribeUrl(email.org_id, email.id, position);
      return { ...toCopy(outgoing, position), recipient: position, unsubscribeUrl };
    });
    return { email, outgoing, copies };
  });
}

/** Returns true for an email of which a server deferred some recipients. Marketing emails have one recipient or copies. */
function isDivided({ copies_left, marketing }: LockedEmail): boolean {
  return copies_left && !marketing;
}

/** Returns the positions of the recipients that the next calls of an email may contain. */
function nextPositions(outgoing: OutgoingEmail, unsentCopies: ReadonlyMap<string, UnsentCopy>): number[] {
  const positions = recipients(outgoing).flatMap(({ address }, position) => {
    const unsentCopy = unsentCopies.get(`${outgoing.id} ${address.toLowerCase()}`);
    return unsentCopy ? [{ position, lastCall: unsentCopy.call ?? '', repeats: unsentCopy.repeats }] : [];
  });
  // Copies without a call come first, then those with the oldest calls: temporarily refused recipients do not delay the others.
  positions.sort((a, b) => (a.lastCall < b.lastCall ? -1 : Number(a.lastCall > b.lastCall)));
  // The copies of an ambiguous call are repeated or fail together, so a call has only copies with equally many repeats.
  return positions.filter(({ repeats }) => repeats === positions[0]?.repeats).map(({ position }) => position);
}

/** Returns an email for its deferred recipients: the same message as for the others, also if some of these are suppressed since. */
function toRest(outgoing: OutgoingEmail, positions: readonly number[], leftOut: ReadonlySet<string>): Copy {
  const { to, cc, bcc } = outgoing;
  const wasIn = ({ address }: { address: string }) => !leftOut.has(address.toLowerCase());
  const all = recipients(outgoing);
  const [recipient = null] = positions.length === 1 ? positions : [];
  return {
    ...outgoing,
    to: to.filter(wasIn),
    cc: cc.filter(wasIn),
    bcc: bcc.filter(wasIn),
    envelope: all.filter((_, position) => positions.includes(position)),
    recipient,
  };
}
