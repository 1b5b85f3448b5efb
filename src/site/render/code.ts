import { createRequire } from 'node:module';
import { escapeHtml } from '../../lib/html.ts';

/** The part of highlight.js that we use. Its own types would add those of browsers to every file of the project. */
interface Highlighter {
  readonly getLanguage: (name: string) => unknown;
  readonly highlight: (text: string, options: { readonly language: string }) => { readonly value: string };
}

const hljs = createRequire(import.meta.url)('highlight.js/lib/common') as Highlighter;

/** @returns HTML with a span for each token; unknown languages get none */
function highlight(text: string, language: string): string {
  return hljs.getLanguage(language) ? hljs.highlight(text, { language }).value : escapeHtml(text);
}

/** Renders a code block with a copy button, which a script shows. */
export function codeBlock(text: string, language: string, attributes = ''): string {
  const body = highlight(text.replace(/\n$/, ''), language);
  return (
    `<div class="code"${attributes}><button type="button" class="copy" data-copy hidden>Copy</button>` +
    `<pre tabindex="0"><code>${body}</code></pre></div>\n`
  );
}

/** `codeBlock` for JSX. */
export function renderCode(...block: Parameters<typeof codeBlock>): JSX.Element {
  return codeBlock(...block);
}
