import { hash } from 'node:crypto';
import { domainToUnicode } from 'node:url';
import { html, Html } from '../lib/html.ts';
import { maskAddress } from '../lib/mask.ts';
import { type Language, WORDS, type Words } from './unsubscribe-words.ts';

/** Colors are custom properties, because older phones do not support `light-dark()`. */
const STYLE = `
:root { color-scheme: light dark; --page: #f3f4f6; --card: #fff; --line: #d8dce2; --text: #1d2127; --soft: #565e69;
  --button: #1f5fbf; --label: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --page: #15181d; --card: #1f242b; --line: #363c45; --text: #e6e9ee; --soft: #a3acb8;
    --button: #8ab4f8; --label: #10151c; }
}
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; padding: 1rem; display: grid; place-items: center; background: var(--page);
  color: var(--text); font: 1.0625rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { width: 100%; max-width: 30rem; padding: 1.75rem; border: 1px solid var(--line); border-radius: 0.75rem;
  background: var(--card); }
h1 { margin: 0 0 0.75rem; font-size: 1.5rem; line-height: 1.25; overflow-wrap: break-word; }
p { margin: 0 0 1.25rem; }
p:last-child { margin: 0; }
.rest { color: var(--soft); font-size: 0.9375rem; }
button { width: 100%; min-height: 3rem; padding: 0.5rem 1rem; margin: 0 0 1.25rem; border: 0; border-radius: 0.5rem;
  background: var(--button); color: var(--label); font: inherit; font-weight: 600; cursor: pointer; }
button:focus-visible { outline: 3px solid var(--text); outline-offset: 3px; }
`;

/** The page loads only its inline style, posts only to its own origin and cannot be framed. */
export const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The sender and recipient in the texts of a page. */
interface PageNames {
  /** A domain as an A-label. */
  readonly sender: string;
  /** A bare address. The page masks it, because links may be forwarded. */
  readonly address: string;
}

/** Returns the page that asks for confirmation. Its form posts the same body as one-click unsubscribe (RFC 8058). */
export function askPage(language: Language, names: PageNames): string {
  const { ask, button, rest } = WORDS[language];
  return page(
    language,
    ask.title,
    html`<p>${fillPlaceholders(ask.text, names)}</p>
      <form method="post">
        <input type="hidden" name="List-Unsubscribe" value="One-Click" />
        <button>${button}</button>
      </form>
      <p class="rest">${rest}</p>`,
  );
}

/** Returns the page that confirms the unsubscription. */
export function donePage(language: Language, names: PageNames): string {
  const { done, rest } = WORDS[language];
  return page(
    language,
    done.title,
    html`<p>${fillPlaceholders(done.text, names)}</p>
      <p class="rest">${rest}</p>`,
  );
}

/** Returns the error page for an invalid link (`unknown`) or for any other error (`trouble`). */
export function errorPage(language: Language, which: keyof Pick<Words, 'unknown' | 'trouble'>): string {
  const { title, text } = WORDS[language][which];
  return page(language, title, html`<p>${text}</p>`);
}

function page(language: Language, title: string, content: Html): string {
  return html`<!doctype html>
    <html lang="${language}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <title>${title}</title>
        ${new Html(`<style>${STYLE}</style>`)}
      </head>
      <body>
        <main>
          <h1>${title}</h1>
          ${content}
        </main>
      </body>
    </html>`.text;
}

/** Replaces the placeholders of a sentence. */
function fillPlaceholders(sentence: string, { sender, address }: PageNames): Html[] {
  const names = { '{sender}': domainToUnicode(sender) || sender, '{address}': maskAddress(address) };
  return sentence
    .split(/(\{sender\}|\{address\})/)
    .map((part) => (part in names ? html`<strong>${names[part as keyof typeof names]}</strong>` : html`${part}`));
}
