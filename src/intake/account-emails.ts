import { chosenNameProblem } from '../accounts/organizations.ts';
import { countInvitation } from '../accounts/sign-in-limits.ts';
import { createReset } from '../accounts/password-reset.ts';
import { ACCOUNT_LINK, AUTO_SUBMITTED } from '../domain/email/account-link.ts';
import { parseMailbox } from '../domain/email/address.ts';
import type { EmailRequest } from '../domain/email/email.ts';
import { ServiceError } from '../domain/errors.ts';
import { html, type Html } from '../lib/html.ts';
import type { Seal } from '../lib/seal.ts';
import { formatWait } from '../lib/text.ts';
import { type Invitation, markEmailed } from '../store/accounts/invitations.ts';
import { hasSeveralMembers } from '../store/accounts/users.ts';
import { findVerifiedHolder } from '../store/domains/domains.ts';
import { insertAccountLink } from '../store/emails/account-links.ts';
import type { Db } from '../store/postgres/pool.ts';
import { findSuppressed } from '../store/suppressions/suppressions.ts';
import { acceptEmail, type IntakeDeps, PLAIN_REQUEST } from './emails.ts';

/** Settings for emails about user accounts. */
export interface AccountEmailSettings {
  /** The setting `SYSTEM_EMAIL_FROM`. The email is sent by the organization that has verified its domain. */
  readonly from: string;
  /** The setting `PUBLIC_URL`. Links must not depend on a request's `Host`, which an attacker can choose. */
  readonly publicUrl: string;
  readonly seal: Seal;
}

export interface AccountEmail {
  readonly to: string;
  readonly subject: string;
  /** Paragraphs before the link. */
  readonly before: readonly string[];
  readonly linkText: string;
  readonly after: string;
  /** The path of the link; it contains a secret. */
  readonly path: string;
}

/**
 * Sends an invitation by email. From then on its link is only in that email, so accepting it confirms the address.
 * @param inviter the address of the member who invites
 * @throws ServiceError rate_limit_exceeded, conflict for an address on the sender's suppression list, or the errors of
 * sendAccountEmail; the inviter can then share the link
 */
export async function emailInvitation(
  deps: IntakeDeps,
  settings: AccountEmailSettings,
  { id, org_id: orgId, email, organization }: Pick<Invitation, 'id' | 'org_id' | 'email' | 'organization'>,
  { token, inviter }: { readonly token: string; readonly inviter: string },
): Promise<void> {
  const seconds = await countInvitation(deps.pool, orgId, email, !(await hasSeveralMembers(deps.pool, orgId)));
  if (seconds !== undefined) {
    const message = `too many invitations were emailed; try again in ${formatWait(seconds)}`;
    throw new ServiceError('rate_limit_exceeded', message, undefined, seconds);
  }
  const senderId = await findSender(deps.pool, settings);
  const address = email.toLowerCase();
  const [hash] = (await deps.contents.hashAddresses(deps.pool, senderId, [address])) ?? [];
  const [suppressed] = await findSuppressed(deps.pool, [{ org_id: senderId, email: address, hash }]);
  if (suppressed?.all) throw new ServiceError('conflict', 'the address receives no email, because it is suppressed');
  const named = chosenNameProblem(organization) === undefined ? organization : 'an organization';
  await sendAccountEmail(deps, settings, senderId, {
    to: email,
    subject: `Invitation to ${named} on Sendwright`,
    before: [`${inviter} invites you to join ${named} on Sendwright.`],
    linkText: 'Accept the invitation',
    after: 'The link works once, within 7 days. If you do not know the sender, ignore this email.',
    path: `/dashboard/invitations/${token}`,
  });
  await markEmailed(deps.pool, orgId, id);
}

/** Sends a link to choose a new password if a user has this address. */
export async function emailPasswordReset(
  deps: IntakeDeps,
  settings: AccountEmailSettings,
  email: string,
): Promise<void> {
  const token = await createReset(deps.pool, email);
  if (token === undefined) return;
  await sendFromOperator(deps, settings, {
    to: email,
    subject: 'Reset your Sendwright password',
    before: [`Someone asked to reset the password of ${email} on Sendwright.`],
    linkText: 'Choose a new password',
    after: 'The link works once, within an hour. If you did not ask for it, ignore this email: your password stays.',
    path: `/dashboard/reset-password/${token}`,
  });
}

/** Sends an email about an account. @throws ServiceError unavailable, or the errors of acceptEmail */
export async function sendFromOperator(
  deps: IntakeDeps,
  settings: AccountEmailSettings,
  letter: AccountEmail,
): Promise<void> {
  await sendAccountEmail(deps, settings, await findSender(deps.pool, settings), letter);
}

/** Returns the organization that sends emails about accounts. @throws ServiceError unavailable */
export async function findSender(db: Db, { from }: AccountEmailSettings): Promise<string> {
  const mailbox = parseMailbox(from);
  const orgId = typeof mailbox === 'string' ? undefined : await findVerifiedHolder(db, mailbox.domain);
  if (orgId !== undefined) return orgId;
  throw new ServiceError('unavailable', 'no organization has verified the domain of SYSTEM_EMAIL_FROM');
}

/**
 * Sends an email about an account like any other email. Its stored body contains a placeholder for the link. The link is sealed
 * in a separate row and inserted when the email is sent, so members of the sending organization cannot read it.
 * @throws ServiceError the errors of acceptEmail
 */
async function sendAccountEmail(
  deps: IntakeDeps,
  { from, publicUrl, seal }: AccountEmailSettings,
  orgId: string,
  letter: AccountEmail,
): Promise<void> {
  const link = publicUrl + letter.path;
  const storeEmail: IntakeDeps['storeEmail'] = async (caller, email) => {
    // Store the link before the email, because a worker may claim the email as soon as it is stored.
    await insertAccountLink(deps.pool, email.id, seal.close(Buffer.from(link), email.id));
    return deps.storeEmail(caller, email);
  };
  await acceptEmail({ ...deps, storeEmail }, { orgId, domainIds: null }, requestOf(from, letter));
}

function requestOf(from: string, { to, subject, before, linkText, after }: AccountEmail): EmailRequest {
  const paragraphs: Html[] = [
    ...before.map((text) => html`<p>${text}</p>`),
    html`<p><a href="${ACCOUNT_LINK}">${linkText}</a></p>`,
    html`<p>${after}</p>`,
  ];
  return {
    ...PLAIN_REQUEST,
    from,
    to: [to],
    subject,
    html: html`<!doctype html>
      <html lang="en">
        <body>
          ${paragraphs}
        </body>
      </html>`.text,
    text: [...before, `${linkText}:\n${ACCOUNT_LINK}`, after].join('\n\n'),
    headers: Object.fromEntries([AUTO_SUBMITTED]),
  };
}
