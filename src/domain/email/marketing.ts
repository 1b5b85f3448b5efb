import { escapeHtml } from '../../lib/html.ts';
import type { OutgoingEmail } from './outgoing.ts';

/**
 * Matches the placeholder. Template languages allow white space around the name. HTML editors and serializers percent-encode what is
 * not allowed in the URL of a link, wholly or in part.
 */
const PLACEHOLDER = /(?:\{|%7[Bb]){3}(?:[ \t]|%20|%09)*unsubscribe(?:_|%5[Ff])url(?:[ \t]|%20|%09)*(?:\}|%7[Dd]){3}/g;

/** RFC 2369 and RFC 8058. Requests must not set these headers: a click on their link unsubscribes the recipient. */
const UNSUBSCRIBE_HEADERS = new Set(['list-unsubscribe', 'list-unsubscribe-post']);

/**
 * Inserts the recipient's unsubscribe link into a marketing email or a copy of one: for `{{{unsubscribe_url}}}` in the
 * bodies, and in the headers for one-click unsubscribe. A body without the placeholder is unchanged.
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
      ...email.headers.filter(([name]) => !UNSUBSCRIBE_HEADERS.has(name.toLowerCase())),
      ['List-Unsubscribe', `<${link}>`],
      ['List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'],
    ],
  };
}
