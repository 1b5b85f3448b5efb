import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './root.ts';

/** A document for users. */
export interface Document {
  /** From the project's folder. */
  readonly path: string;
  readonly text: string;
}

/** A fenced block. */
export interface Block {
  /** The words behind the fence: the language and further ones. */
  readonly info: readonly string[];
  readonly text: string;
  /** Of its first line in the document, from 1. */
  readonly line: number;
}

/** README.md, then the files of docs/. */
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

/** The commands of a shell block, with continued lines. */
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
