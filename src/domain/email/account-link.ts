import { escapeHtml } from '../../lib/html.ts';
import { makeSeal, type Seal } from '../../lib/seal.ts';
import { deriveKeys, type SecretKeys } from '../../lib/secret-key.ts';
import type { OutgoingEmail } from './outgoing.ts';

/** The placeholder of the link in the stored body of an email about an account. */
export const ACCOUNT_LINK = '{{{account_link}}}';

/** Seals links of emails about accounts. The associated data is the email's id. */
export function accountLinkSeal(secretKeys: SecretKeys): Seal {
  return makeSeal(deriveKeys(secretKeys, 'account links'));
}

export function hasAccountLink({ html, text }: Pick<OutgoingEmail, 'html' | 'text'>): boolean {
  return [html, text].some((body) => body?.includes(ACCOUNT_LINK));
}

/** RFC 3834: vacation responders do not reply to emails about accounts. */
export const AUTO_SUBMITTED = ['Auto-Submitted', 'auto-generated'] as const;

/**
 * Returns true for an email about an account, even if its link is no longer stored. A customer's email may contain the placeholder
 * too. It has an API key, unless it was resent from the dashboard; then it normally lacks the header or one of the placeholders.
 */
export function isAccountEmail(
  { html, text, headers }: Pick<OutgoingEmail, 'html' | 'text' | 'headers'>,
  hasApiKey: boolean,
): boolean {
  const hasBothPlaceholders = [html, text].every((body) => body?.includes(ACCOUNT_LINK));
  const [header, content] = AUTO_SUBMITTED;
  return !hasApiKey && hasBothPlaceholders && headers.some(([name, value]) => name === header && value === content);
}

/** Inserts the link. The provider must not track the email, because its report of a click would contain the link. */
export function insertAccountLink(email: OutgoingEmail, link: string): OutgoingEmail {
  return {
    ...email,
    // Replacement functions, since `$&` has a meaning in a replacement string.
    html: email.html?.replaceAll(ACCOUNT_LINK, () => escapeHtml(link)) ?? null,
    text: email.text?.replaceAll(ACCOUNT_LINK, () => link) ?? null,
    isTracked: false,
  };
}
