import type { Logger } from 'pino';
import { countNotice } from '../accounts/sign-in-limits.ts';
import { listOwners } from '../store/accounts/users.ts';
import type { Endpoint } from '../store/webhooks/endpoints.ts';
import { type AccountEmail, type AccountEmailSettings, findSender, sendFromOperator } from './account-emails.ts';
import type { IntakeDeps } from './emails.ts';

export interface NoticeDeps extends IntakeDeps {
  /** Null if this service sends no emails about accounts. */
  readonly accountEmails: AccountEmailSettings | null;
  readonly log: Pick<Logger, 'warn'>;
}

type Notice = Omit<AccountEmail, 'to'> & { readonly topic: string };

/** Reports to a user that somebody who knows the password entered wrong codes of the second factor. */
export async function reportWrongCodes(deps: NoticeDeps, email: string): Promise<void> {
  await send(deps, email, {
    topic: 'wrong codes',
    subject: 'Wrong codes for your Sendwright account',
    before: [
      `Somebody entered the password of ${email} on Sendwright and then several wrong codes of your authenticator app.`,
      'If it was not you, somebody knows your password: change it now.',
    ],
    linkText: 'Change your password',
    after: 'Without a code, nobody can sign in.',
    path: '/dashboard/account',
  });
}

/**
 * Reports to the owners of an organization that events go to a new URL, since an endpoint receives them for as long as it exists. In the
 * organization that sends these emails, the endpoint would get them as its first events; its owners find the change in the audit log.
 * @param actor who added or changed the endpoint, as the subject of a sentence
 */
export async function reportEndpoint(
  deps: NoticeDeps,
  orgId: string,
  { id, url }: Pick<Endpoint, 'id' | 'url'>,
  actor: string,
): Promise<void> {
  const { pool, accountEmails } = deps;
  const senderId = accountEmails && (await findSender(pool, accountEmails).catch(() => undefined));
  if (senderId === orgId) return;
  const { host } = new URL(url);
  for (const { email, organization } of await listOwners(pool, orgId)) {
    await send(deps, email, {
      topic: `endpoints ${orgId}`,
      subject: `New webhook URL of ${organization} on Sendwright`,
      before: [`${actor} set the URL of a webhook endpoint of ${organization}. Its events are now sent to ${host}.`],
      linkText: 'Show the endpoint',
      after: 'If you do not expect this, disable the endpoint and revoke the API keys that others may know.',
      path: `/dashboard/webhooks/${id}`,
    });
  }
}

/** Sends a notice if there were not too many. What it reports has happened, so an error is only logged. */
async function send(deps: NoticeDeps, to: string, { topic, ...letter }: Notice): Promise<void> {
  const { accountEmails, log } = deps;
  if (accountEmails === null) return;
  try {
    if (await countNotice(deps.pool, to, topic)) await sendFromOperator(deps, accountEmails, { ...letter, to });
  } catch (error) {
    log.warn({ err: error }, 'could not email a notice about an account');
  }
}
