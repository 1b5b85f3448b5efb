import { findVerifiedDomain } from '../store/outbox/backlog.ts';
import type { Context } from './page.ts';

/** The body of a request that works as it is, where the organization has a verified domain: an email to the reader. */
export async function exampleEmail({ pool, organization, user }: Context): Promise<Record<string, string>> {
  const domain = (await findVerifiedDomain(pool, organization.id)) ?? 'your-domain.example';
  return { from: `hello@${domain}`, to: user.email, subject: 'It works', text: 'The first email.' };
}
