import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const require = createRequire(import.meta.url);
const own = (name: string): string => fileURLToPath(new URL(`./assets/${name}`, import.meta.url));

const CSS = 'text/css; charset=utf-8';
const JS = 'text/javascript; charset=utf-8';
const SVG = 'image/svg+xml';

/** Every file that pages load. */
const FILES: Readonly<Record<string, readonly [path: () => string, type: string]>> = {
  'dashboard.css': [() => own('dashboard.css'), CSS],
  'components.css': [() => own('components.css'), CSS],
  'messages.css': [() => own('messages.css'), CSS],
  'charts.js': [() => own('charts.js'), JS],
  'dashboard.js': [() => own('dashboard.js'), JS],
  'language.js': [() => own('language.js'), JS],
  'mark.svg': [() => own('mark.svg'), SVG],
  'htmx.js': [() => require.resolve('htmx.org/dist/htmx.min.js'), JS],
  'uplot.js': [() => require.resolve('uplot/dist/uPlot.iife.min.js'), JS],
  'uplot.css': [() => require.resolve('uplot/dist/uPlot.min.css'), CSS],
};

export interface Asset {
  /** Holds a hash of what it is, so that it may be kept for ever. */
  readonly path: string;
  readonly type: string;
  readonly body: Buffer;
  readonly gzipped: Buffer;
}

/** Reads all files. @param folder the path under which they are served */
export function loadAssets(folder: string): ReadonlyMap<string, Asset> {
  return new Map(
    Object.entries(FILES).map(([name, [path, type]]) => {
      const body = readFileSync(path());
      const hash = createHash('sha256').update(body).digest('hex').slice(0, 16);
      return [name, { path: `${folder}/${hash}/${name}`, type, body, gzipped: gzipSync(body, { level: 9 }) }];
    }),
  );
}
