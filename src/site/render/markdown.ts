import { posix } from 'node:path';
import MarkdownIt, { type Token } from 'markdown-it';
import { escapeHtml } from '../../lib/html.ts';
import { codeBlock } from './code.ts';

export interface Heading {
  readonly level: number;
  readonly anchor: string;
  readonly text: string;
}

/** The text below a heading, without markup. */
interface SectionText extends Heading {
  readonly body: string;
}

export interface Rendered {
  readonly title: string;
  readonly html: string;
  readonly headings: readonly Heading[];
  readonly sections: readonly SectionText[];
}

/** Matches paths of the service that a document names in backticks; the page links to them. */
const OWN_PATH = /^\/(?:docs(?:\/[\w/.-]*)?(?:#[\w-]+)?|openapi\.json|llms\.txt)$/;

// HTML is disabled: documents show it as text.
const markdown = new MarkdownIt({ html: false, linkify: false, typographer: false });
const { rules } = markdown.renderer;

rules['fence'] = (tokens, index) => {
  const { content, info } = tokens[index] as Token;
  return codeBlock(content, info.split(' ')[0] ?? '');
};
rules['code_inline'] = (tokens, index) => {
  const { content } = tokens[index] as Token;
  const code = `<code>${escapeHtml(content)}</code>`;
  return OWN_PATH.test(content) ? `<a href="${escapeHtml(content)}">${code}</a>` : code;
};
// Regions of a page need different names.
rules['table_open'] = (tokens, index) => {
  const number = tokens.slice(0, index + 1).filter(({ type }) => type === 'table_open').length;
  return `<div class="table" tabindex="0" role="region" aria-label="Table ${number}"><table>\n`;
};
rules['table_close'] = () => '</table></div>\n';
rules['heading_open'] = (tokens, index) => {
  const heading = tokens[index] as Token;
  const { tag } = heading;
  const id = escapeHtml(String(heading.attrGet('id')));
  return tag === 'h1' ? `<${tag} id="${id}">` : `<${tag} id="${id}"><a class="anchor" href="#${id}">`;
};
rules['heading_close'] = (tokens, index) => {
  const { tag } = tokens[index] as Token;
  return tag === 'h1' ? `</${tag}>\n` : `</a></${tag}>\n`;
};

/** Renders one line of Markdown, such as a description of the API. */
export function renderInline(text: string): JSX.Element {
  return markdown.renderInline(text);
}

/** Renders paragraphs of Markdown. */
export function renderText(text: string): JSX.Element {
  return markdown.render(text);
}

/** @returns the first heading of a document as text */
export function titleOf(text: string): string {
  const [, title = ''] = /^# (.+)$/m.exec(text) ?? [];
  return title.replaceAll('`', '');
}

/**
 * Renders a document of `docs/`.
 * @param titles the titles of all pages of the site by their names
 */
export function renderDocument(text: string, titles: ReadonlyMap<string, string>): Rendered {
  const tokens = markdown.parse(text, {});
  const headings = nameHeadings(tokens);
  nameRows(tokens, new Set(headings.map(({ anchor }) => anchor)));
  for (const token of tokens) {
    alignByClass(token);
    rewriteLinks(token, titles);
  }
  return {
    title: titleOf(text),
    html: markdown.renderer.render(tokens, markdown.options, {}),
    headings,
    sections: sectionsOf(tokens, headings),
  };
}

/** Sets the ids of headings to the anchors that GitHub gives them. */
function nameHeadings(tokens: readonly Token[]): Heading[] {
  const counts = new Map<string, number>();
  return tokens.flatMap((token, index) => {
    if (token.type !== 'heading_open') return [];
    const text = plainText(tokens[index + 1]);
    const name = anchorOf(text);
    const count = counts.get(name) ?? 0;
    counts.set(name, count + 1);
    const anchor = count === 0 ? name : `${name}-${count}`;
    token.attrSet('id', anchor);
    return [{ level: Number(token.tag.slice(1)), anchor, text }];
  });
}

/** Sets the ids of table rows to the first cell that is only code, such as that of an error, for links from outside. */
function nameRows(tokens: readonly Token[], names: Set<string>): void {
  let row: Token | undefined;
  for (const token of tokens) {
    if (token.type === 'tr_open') row = token;
    const [code, ...others] = token.type === 'inline' ? (token.children ?? []) : [];
    if (row === undefined || code?.type !== 'code_inline' || others.length > 0 || !/^\w+$/.test(code.content)) continue;
    if (!names.has(code.content)) row.attrSet('id', code.content);
    names.add(code.content);
    row = undefined;
  }
}

export function anchorOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

function plainText(token: Token | undefined): string {
  return (token?.children ?? [])
    .map(({ type, content }) => (type === 'softbreak' || type === 'hardbreak' ? ' ' : content))
    .join('');
}

function sectionsOf(tokens: readonly Token[], headings: readonly Heading[]): SectionText[] {
  const bodies = headings.map(() => [] as string[]);
  let current = -1;
  tokens.forEach((token, index) => {
    if (token.type === 'heading_open') current++;
    else if (token.type === 'inline' && tokens[index - 1]?.type !== 'heading_open')
      bodies[current]?.push(plainText(token));
    else if (token.type === 'fence') bodies[current]?.push(token.content);
  });
  return headings.map((heading, index) => ({ ...heading, body: bodies[index]?.join('\n') ?? '' }));
}

/** Replaces the style attributes for cell alignment by classes: the page's content security policy forbids style attributes. */
function alignByClass(token: Token): void {
  if (token.type !== 'th_open' && token.type !== 'td_open') return;
  const [, side] = /^text-align:(\w+)$/.exec(String(token.attrGet('style'))) ?? [];
  if (side !== undefined) token.attrs = [['class', side]];
}

/**
 * Rewrites links to point at pages of the site. Removes links to files that exist only in the repository, and keeps their
 * text.
 */
function rewriteLinks(token: Token, titles: ReadonlyMap<string, string>): void {
  const open: boolean[] = [];
  for (const [index, child] of (token.children ?? []).entries()) {
    if (child.type === 'image') child.attrSet('src', `/docs/${String(child.attrGet('src'))}`);
    if (child.type === 'link_open') {
      const target = targetOf(String(child.attrGet('href')), titles);
      open.push(target !== undefined);
      if (target === undefined) turnIntoSpan(child);
      else child.attrSet('href', target);
      nameByTitle(token.children?.[index + 1], titles);
    }
    if (child.type === 'link_close' && open.pop() === false) child.tag = 'span';
  }
}

/** Replaces a file name, which has no meaning on the site, by the title of its page. */
function nameByTitle(text: Token | undefined, titles: ReadonlyMap<string, string>): void {
  const [, name = ''] = /^(?:docs\/)?([\w-]+)\.md$/.exec(text?.content ?? '') ?? [];
  const title = titles.get(name);
  if (text && title !== undefined) text.content = title;
}

function turnIntoSpan(link: Token): void {
  link.tag = 'span';
  link.attrs = [
    ['class', 'file'],
    ['title', `${String(link.attrGet('href')).replace(/^(?:\.\.\/)+/, '')} in the repository`],
  ];
}

/** @returns undefined for a file that is not on the site */
function targetOf(href: string, titles: ReadonlyMap<string, string>): string | undefined {
  if (/^(?:https?:|mailto:|#)/.test(href)) return href;
  const [file = '', anchor] = href.split('#');
  const path = posix.join('docs', file);
  const [, name] = /^docs\/([\w-]+)\.md$/.exec(path) ?? [];
  if (name === undefined || !titles.has(name)) return undefined;
  return `/docs/${name}${anchor === undefined ? '' : `#${anchor}`}`;
}
