import { escapeHtml } from '../../lib/html.ts';
import type { OutgoingEmail } from './outgoing.ts';

/** White space beside the name is allowed, as template languages do. */
const PLACEHOLDER = /\{\{\{[ \t]*unsubscribe_url[ \t]*\}\}\}/g;

/** Of RFC 2369 and RFC 8058. Whose address is in them is whom a click unsubscribes, so nobody else may set them. */
const OURS = new Set(['list-unsubscribe', 'list-unsubscribe-post']);

/**
 * A marketing email, or a copy of one, with its recipient's own link: in place of `{{{unsubscribe_url}}}` wherever that
 * stands in its bodies, and in the headers that let a mail program unsubscribe with one click. A body without the
 * placeholder stays as it is.
 */
export function personalize(email: OutgoingEmail, link: string): OutgoingEmail {
  const escaped = escapeHtml(link);
  return {
    ...email,
    // Functions, since `$&` means something in a replacement that is a text.
    html: email.html?.replace(PLACEHOLDER, () => escaped) ?? null,
    text: email.text?.replace(PLACEHOLDER, () => link) ?? null,
    headers: [
      ...email.headers.filter(([name]) => !OURS.has(name.toLowerCase())),
      ['List-Unsubscribe', `<${link}>`],
      ['List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'],
    ],
  };
}
