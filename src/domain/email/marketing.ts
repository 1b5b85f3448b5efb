import { escapeHtml } from '../../lib/html.ts';
import type { OutgoingEmail } from './outgoing.ts';

/** Template languages allow white space around the name. */
const PLACEHOLDER = /\{\{\{[ \t]*unsubscribe_url[ \t]*\}\}\}/g;

/** RFC 2369 and RFC 8058. A click unsubscribes the recipient in these headers, so requests must not set them. */
const OURS = new Set(['list-unsubscribe', 'list-unsubscribe-post']);

/**
 * Inserts the recipient's unsubscribe link into a marketing email or a copy of one: in place of `{{{unsubscribe_url}}}` in
 * its bodies, and in the headers for one-click unsubscribe. A body without the placeholder is unchanged.
 */
export function personalize(email: OutgoingEmail, link: string): OutgoingEmail {
  const escaped = escapeHtml(link);
  return {
    ...email,
    unsubscribeUrl: link,
    // Replacement functions, since `$&` has a meaning in a replacement string.
    html: email.html?.replace(PLACEHOLDER, () => escaped) ?? null,
    text: email.text?.replace(PLACEHOLDER, () => link) ?? null,
    headers: [
      ...email.headers.filter(([name]) => !OURS.has(name.toLowerCase())),
      ['List-Unsubscribe', `<${link}>`],
      ['List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'],
    ],
  };
}
