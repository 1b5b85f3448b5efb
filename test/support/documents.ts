import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What is written for those who use Sendwright. */
export interface Document {
  /** From the project's folder. */
  readonly path: string;
  readonly text: string;
}

/** A fenced block. */
export interface Block {
  /** What follows the fence, by words: the language, and what else is said of it. */
  readonly info: readonly string[];
  readonly text: string;
  /** Of its first line in the document, from 1. */
  readonly line: number;
}

const ROOT = join(import.meta.dirname, '../..');

/** README.md and what is in docs/, the first first. */
export async function documents(): Promise<Document[]> {
  const names = (await readdir(join(ROOT, 'docs'))).filter((name) => name.endsWith('.md')).sort();
  const paths = ['README.md', ...names.map((name) => `docs/${name}`)];
  return Promise.all(paths.map(async (path) => ({ path, text: await readFile(join(ROOT, path), 'utf8') })));
}

/** The fenced blocks of a language, in order. */
export function blocks({ text }: Document, language: string): Block[] {
  const found = [...text.matchAll(/^```(\S.*)\n([\s\S]*?)^```$/gm)].map(({ 1: info = '', 2: body = '', index }) => ({
    info: info.split(' '),
    text: body,
    line: text.slice(0, index).split('\n').length + 1,
  }));
  return found.filter(({ info }) => info[0] === language);
}

/** The commands of a block of shell: a line, with those that continue it. */
export function commands({ text }: Block): string[] {
  const all: string[] = [];
  let open = '';
  for (const line of text.split('\n')) {
    open += open === '' ? line : `\n${line}`;
    const quotes = open.replace(/#.*$/, '').match(/'/g)?.length ?? 0;
    if (open.endsWith('\\') || quotes % 2 === 1) continue;
    if (open.trim() !== '') all.push(open);
    open = '';
  }
  return open.trim() === '' ? all : [...all, open];
}
