import { Tokenizer, type TokenizerCallbacks } from 'htmlparser2';
import { escapeHtml } from '../../lib/html.ts';

/** A replacement of a part of a text. */
interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The `href` attribute of an `<a>` or `<area>`. */
interface HtmlLink {
  /** The value with entities decoded. */
  readonly href: string;
  /** The offset of the value in the text, without quotes. */
  readonly start: number;
  readonly end: number;
  /** The end of the attribute, after a closing quote. */
  readonly attributeEnd: number;
}

interface ParsedLinks {
  readonly links: readonly HtmlLink[];
  /** The end of the body: before its last end tag, otherwise before that of the document, otherwise the end of the text. */
  readonly bodyEnd: number;
}

const ignore = (): void => undefined;

/** Matches the text between an attribute's name and its value. */
const BEFORE_VALUE = /[\t\n\f\r ]*=[\t\n\f\r ]*["']?/y;

/**
 * Finds the links of an HTML text and the end of its body. htmlparser2's tokenizer returns positions in the text, so all
 * other text stays unchanged; serializing a tree would repair and reorder it. Ignores comments, scripts and styles.
 */
function findLinks(html: string): ParsedLinks {
  const links: HtmlLink[] = [];
  let tagLinks: HtmlLink[] = [];
  let [bodyEnd, documentEnd] = [-1, -1];
  let isLinking = false;
  let valueStart = -1;
  let href = '';
  // Called only at the end of a tag: links of an unfinished tag are ignored.
  const endTag = (): void => {
    for (const link of tagLinks) links.push(link);
    tagLinks = [];
  };
  const callbacks: TokenizerCallbacks = {
    onopentagname: (start, end) => {
      tagLinks = [];
      isLinking = /^(?:a|area)$/i.test(html.slice(start, end));
    },
    onattribname(start, end) {
      valueStart = -1;
      if (!isLinking || html.slice(start, end).toLowerCase() !== 'href') return;
      BEFORE_VALUE.lastIndex = end;
      valueStart = BEFORE_VALUE.test(html) ? BEFORE_VALUE.lastIndex : -1;
      href = '';
    },
    onattribdata(start, end) {
      if (valueStart !== -1) href += html.slice(start, end);
    },
    onattribentity(codePoint) {
      if (valueStart !== -1) href += String.fromCodePoint(codePoint);
    },
    onattribend(_quote, attributeEnd) {
      if (valueStart === -1) return;
      const isQuoted = /["']/.test(html[valueStart - 1] ?? '');
      tagLinks.push({ href, start: valueStart, end: isQuoted ? attributeEnd - 1 : attributeEnd, attributeEnd });
    },
    onclosetag(start, end) {
      const name = html.slice(start, end).toLowerCase();
      // The tokenizer reports the name; `</` is before it.
      if (name === 'body') bodyEnd = start - 2;
      else if (name === 'html') documentEnd = start - 2;
    },
    oncdata: ignore,
    oncomment: ignore,
    ondeclaration: ignore,
    onend: ignore,
    onopentagend: endTag,
    onprocessinginstruction: ignore,
    onselfclosingtag: endTag,
    ontext: ignore,
    ontextentity: ignore,
  };
  const tokenizer = new Tokenizer({ decodeEntities: true }, callbacks);
  tokenizer.write(html);
  tokenizer.end();
  const end = [bodyEnd, documentEnd].find((position) => position !== -1);
  return { links, bodyEnd: end ?? html.length };
}

/**
 * Replaces the targets of links, and inserts HTML at the end of the body. All other characters stay unchanged.
 * @param replace returns the new target of a link; undefined leaves it unchanged
 */
export function replaceLinks(html: string, replace: (href: string) => string | undefined, atBodyEnd = ''): string {
  const { links, bodyEnd } = findLinks(html);
  const edits = links.flatMap(({ href, start, end }): Edit[] => {
    const target = replace(href);
    return target === undefined ? [] : [{ start, end, text: escapeHtml(target) }];
  });
  if (atBodyEnd !== '') edits.push({ start: bodyEnd, end: bodyEnd, text: atBodyEnd });
  return applyEdits(html, edits);
}

/** Adds an attribute without a value to the links that `isMarked` selects. */
export function markLinks(html: string, isMarked: (href: string) => boolean, attribute: string): string {
  const marked = findLinks(html).links.filter(({ href }) => isMarked(href));
  return applyEdits(
    html,
    marked.map(({ attributeEnd: at }) => ({ start: at, end: at, text: ` ${attribute}` })),
  );
}

/** Applies edits, which must not overlap. */
function applyEdits(text: string, edits: readonly Edit[]): string {
  const parts: string[] = [];
  let from = 0;
  for (const { start, end, text: replacement } of [...edits].sort((a, b) => a.start - b.start)) {
    parts.push(text.slice(from, start), replacement);
    from = end;
  }
  return [...parts, text.slice(from)].join('');
}
