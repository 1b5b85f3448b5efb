import { ServiceError } from '../domain/errors.ts';
import { digest } from '../lib/digest.ts';
import type { Acceptance } from '../store/emails/accept.ts';
import { findVerifiedDomain } from '../store/outbox/backlog.ts';
import { type IntakeDeps, PLAIN_REQUEST } from './emails.ts';
import { acceptOnce } from './resend.ts';

/**
 * Sends a test email from a verified domain of an organization. It counts against the limits like other emails.
 * @param to the address of the user who requests it
 * @param requestId deduplicates: a repeated click sends one email
 * @throws ServiceError conflict without a verified domain or if `requestId` was used before; the errors of acceptEmail
 */
export async function sendTestEmail(
  deps: IntakeDeps,
  orgId: string,
  to: string,
  requestId: string,
): Promise<Acceptance> {
  const domain = await findVerifiedDomain(deps.pool, orgId);
  if (domain === undefined)
    throw new ServiceError('conflict', 'A test email needs a verified domain. Verify one first.');
  const request = {
    ...PLAIN_REQUEST,
    from: `Sendwright <hello@${domain}>`,
    to: [to],
    subject: `Test email from ${domain}`,
    text: `This is a test email from the Sendwright dashboard. It shows that ${domain} can send email.`,
  };
  const idempotency = { key: `test ${requestId}`, fingerprint: digest(to) };
  return acceptOnce(deps, orgId, request, { idempotency }, 'This test email was sent already.');
}
