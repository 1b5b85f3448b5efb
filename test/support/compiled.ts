import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { transform } from 'esbuild';
import { ROOT } from './root.ts';

/** Folders with TypeScript that tests use. */
const SOURCES = ['client', 'src', 'activities', 'workflows', 'dev', 'bench', 'test'];

/**
 * Compiles all TypeScript of the project into a folder, file by file and without type checks: tsx delays the start of each
 * of hundreds of processes by a third of a second. `import.meta` is that of the source, and source maps are inline.
 */
export async function compileInto(folder: string): Promise<void> {
  const paths = (await Promise.all(SOURCES.map(sourcesIn))).flat();
  await mkdir(folder);
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const path of new Set(paths.map(dirname))) await mkdir(join(folder, path), { recursive: true });
  await Promise.all(paths.map((path) => compile(path, join(folder, compiled(path)))));
}

/** Where a source is when it is compiled. @param path from the project's folder */
export function compiled(path: string): string {
  return path.replace(/\.tsx?$/, '.mjs');
}

async function sourcesIn(folder: string): Promise<string[]> {
  const paths = await readdir(join(ROOT, folder), { recursive: true });
  return paths.filter((path) => /\.tsx?$/.test(path)).map((path) => join(folder, path));
}

async function compile(path: string, target: string): Promise<void> {
  const source = join(ROOT, path);
  const text = (await readFile(source, 'utf8'))
    .replace(/^((?:import |export |\} ).*?'\.[^']+|.*\bimport\('\.[^']+)\.tsx?'/gm, "$1.mjs'")
    .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(source).href))
    .replaceAll('import.meta.dirname', JSON.stringify(dirname(source)));
  const { code } = await transform(text, {
    loader: path.endsWith('x') ? 'tsx' : 'ts',
    format: 'esm',
    target: 'node20',
    jsx: 'automatic',
    jsxImportSource: '@kitajs/html',
    sourcemap: 'inline',
    sourcefile: source,
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  });
  await writeFile(target, code);
}
