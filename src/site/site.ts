import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The output folder of `npm run build`: `dist/site`, relative to `dist/src/site`. */
const BUILT = fileURLToPath(new URL('../../site', import.meta.url));

/** The rendered documentation. Paths are URL paths, such as `/docs/sending` and `/docs/sending.md`. */
export interface Site {
  readonly paths: ReadonlySet<string>;
  readonly read: (path: string) => Promise<Buffer>;
}

/** @returns the file for a URL path, relative to the site's folder */
export function fileOf(path: string): string {
  if (path === '/docs') return 'docs/index.html';
  const file = path.slice(1);
  return /\.\w+$/.test(file) ? file : `${file}.html`;
}

function pathOf(file: string): string {
  return file === 'docs/index.html' ? '/docs' : `/${file.replace(/\.html$/, '')}`;
}

/**
 * Loads the pages that the build has rendered. When run from source, it renders them itself.
 * @param describeApi returns the API description
 */
export async function loadSite(describeApi: () => object): Promise<Site> {
  const entries = await readdir(BUILT, { recursive: true, withFileTypes: true }).catch(() => undefined);
  if (entries === undefined) {
    const { renderSite } = await import('./render/site.ts');
    const files = await renderSite(describeApi());
    return { paths: new Set(files.keys()), read: async (path) => Buffer.from(files.get(path) ?? '') };
  }
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(BUILT.length + 1));
  return { paths: new Set(files.map(pathOf)), read: async (path) => readFile(join(BUILT, fileOf(path))) };
}
