import { findVerifiedDomain } from '../store/outbox/backlog.ts';
import type { Context } from './page.ts';

/** An email to the user, from a verified domain if there is one. */
export async function exampleEmail({ pool, organization, user }: Context): Promise<Record<string, string>> {
  const domain = (await findVerifiedDomain(pool, organization.id)) ?? 'your-domain.example';
  return { from: `hello@${domain}`, to: user.email, subject: 'It works', text: 'The first email.' };
}
