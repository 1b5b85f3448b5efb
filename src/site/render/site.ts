import { hash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NAVIGATION } from '../navigation.ts';
import { indexSections, type Section } from '../search.ts';
import type { Description } from './description.ts';
import { type Frame, Index, Page } from './layout.tsx';
import { type Rendered, renderDocument, titleOf } from './markdown.ts';
import { type ReferencePage, renderReference } from './reference.tsx';

const inSources = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const DOCUMENTS = inSources('../docs');
const require = createRequire(import.meta.url);
/** Assets of pages by the name under which they are served. */
const ASSETS: Readonly<Record<string, string>> = {
  'docs.css': inSources('site/assets/docs.css'),
  'article.css': inSources('site/assets/article.css'),
  'docs.js': inSources('site/assets/docs.js'),
  'theme.css': inSources('dashboard/assets/theme.css'),
  'mark.svg': inSources('dashboard/assets/mark.svg'),
  'minisearch.js': join(dirname(require.resolve('minisearch')), '../es/index.js'),
};
const EXCERPT_LENGTH = 180;

type Files = ReadonlyMap<string, string | Buffer>;

interface Document extends Rendered {
  readonly name: string;
  readonly source: string;
}

/** Renders all files of the site by URL path. @param description the API description, as /openapi.json returns it */
export async function renderSite(description: object): Promise<Files> {
  const names = new Set(NAVIGATION.flatMap((group) => group.pages.map(({ name }) => name)));
  const documents = await readDocuments(names);
  const reference = renderReference(description as Description);
  const files = new Map<string, string | Buffer>();
  const frame = await makeFrame(files, documents, reference);
  for (const document of documents) addDocument(files, frame, document);
  for (const page of reference) addReferencePage(files, frame, page);
  addOwnPages(files, frame, documents);
  for (const path of ['/llms.txt', '/docs/llms.txt']) files.set(path, listPages(documents, reference));
  for (const name of await readdir(join(DOCUMENTS, 'screenshots')))
    files.set(`/docs/screenshots/${name}`, await readFile(join(DOCUMENTS, 'screenshots', name)));
  return files;
}

async function readDocuments(names: ReadonlySet<string>): Promise<Document[]> {
  const written = [...names].filter((name) => name !== 'api');
  const sources = await Promise.all(
    written.map(async (name) => ({ name, source: await readFile(join(DOCUMENTS, `${name}.md`), 'utf8') })),
  );
  const titles = new Map(sources.map(({ name, source }) => [name, titleOf(source)]));
  return sources.map(({ name, source }) => ({ name, source, ...renderDocument(source, titles) }));
}

async function makeFrame(
  files: Map<string, string | Buffer>,
  documents: readonly Document[],
  reference: readonly ReferencePage[],
): Promise<Frame> {
  const paths = new Map<string, string>();
  const add = (name: string, body: string | Buffer) => {
    const version = hash('sha256', body).slice(0, 16);
    const path = `/docs/assets/${version}/${name}`;
    paths.set(name, path);
    files.set(path, body);
  };
  for (const [name, file] of Object.entries(ASSETS)) add(name, await readFile(file));
  add('search.json', indexSections([...documents.flatMap(sectionsOfDocument), ...reference.flatMap(sectionsOfPage)]));
  const titles = titlesOf(documents);
  const groups = NAVIGATION.map(({ title, pages }) => ({
    title,
    links: pages.flatMap(({ name }) =>
      name === 'api'
        ? reference.map((page) => ({ path: page.path, title: page.title }))
        : [{ path: `/docs/${name}`, title: titles.get(name) ?? name }],
    ),
  }));
  const asset = (name: string) => {
    const path = paths.get(name);
    if (path === undefined) throw new Error(`the documentation has no asset ${name}`);
    return path;
  };
  return { groups, asset };
}

function titlesOf(documents: readonly Document[]): ReadonlyMap<string, string> {
  return new Map([...documents.map(({ name, title }): [string, string] => [name, title]), ['api', 'API reference']]);
}

function descriptionOf(name: string): string {
  return NAVIGATION.flatMap(({ pages }) => pages).find((page) => page.name === name)?.description ?? '';
}

function sectionsOfDocument({ name, title, sections }: Document): Section[] {
  return sections.map(({ level, anchor, text, body }) => ({
    id: `/docs/${name}${level === 1 ? '' : `#${anchor}`}`,
    title: text,
    page: title,
    text: body,
    excerpt: excerptOf(body),
  }));
}

function sectionsOfPage({ path, title: page, sections }: ReferencePage): Section[] {
  return sections.map(({ anchor, title, text, excerpt = text }) => ({
    id: anchor === '' ? path : `${path}#${anchor}`,
    title,
    page: page === 'API reference' ? page : `${page}, API reference`,
    text,
    excerpt: excerptOf(excerpt),
  }));
}

function excerptOf(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length <= EXCERPT_LENGTH ? line : `${line.slice(0, line.lastIndexOf(' ', EXCERPT_LENGTH))} …`;
}

function addDocument(files: Map<string, string | Buffer>, frame: Frame, document: Document): void {
  const { name, title, headings, source, html } = document;
  const path = `/docs/${name}`;
  const props = { frame, path, title, headings, description: descriptionOf(name), source: `${path}.md` };
  files.set(path, whole(Page({ ...props, children: html })));
  files.set(`${path}.md`, source);
}

function addReferencePage(files: Map<string, string | Buffer>, frame: Frame, page: ReferencePage): void {
  const { path, title, description, headings, html, markdown } = page;
  files.set(path, whole(Page({ frame, path, title, description, headings, source: `${path}.md`, children: html })));
  files.set(`${path}.md`, markdown);
}

/** Adds the index page, and the pages that the server completes: search results and "not found". */
function addOwnPages(files: Map<string, string | Buffer>, frame: Frame, documents: readonly Document[]): void {
  const pages = [
    { path: '/docs', title: 'Documentation', children: Index({ titles: titlesOf(documents) }) },
    { path: '/docs/search', title: 'Search', children: '<h1>Search</h1>\n<!--results-->' },
    {
      path: '/docs/not-found',
      title: 'Page not found',
      children: '<h1>Page not found</h1>\n<p>The documentation has no page at this address. Search for it above.</p>',
    },
  ];
  for (const { path, title, children } of pages) {
    files.set(path, whole(Page({ frame, path, title, description: `${title} of Sendwright`, children })));
  }
}

function whole(page: unknown): string {
  return `<!doctype html>${String(page)}`;
}

/** Renders the index of all pages for language models (llmstxt.org). */
function listPages(documents: readonly Document[], reference: readonly ReferencePage[]): string {
  const titles = titlesOf(documents);
  const groups = NAVIGATION.map(({ title, pages }) => {
    const lines = pages.flatMap(({ name, description }) =>
      name === 'api'
        ? reference.map((page) => `- [${page.title}](${page.path}.md): ${page.description}`)
        : [`- [${titles.get(name) ?? name}](/docs/${name}.md): ${description}`],
    );
    return `## ${title}\n\n${lines.join('\n')}\n`;
  });
  return [
    '# Sendwright\n',
    '> A self-hosted service that sends email, SMS and WhatsApp messages by an HTTP API, on Temporal and Postgres.\n',
    'The API is described by [/openapi.json](/openapi.json) (OpenAPI 3.1).\n',
    ...groups,
  ].join('\n');
}
