import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { contentType } from 'mime-types';

const require = createRequire(import.meta.url);
const OWN_FOLDER = fileURLToPath(new URL('./assets', import.meta.url));
const PACKAGED: Readonly<Record<string, string>> = {
  'htmx.js': 'htmx.org/dist/htmx.min.js',
};

export interface Asset {
  /** Contains a hash of the body, so browsers may cache it forever. */
  readonly path: string;
  readonly type: string;
  readonly body: Buffer;
  readonly gzipped: Buffer;
}

/** Assets of pages by name. */
export type Assets = ReadonlyMap<string, Asset>;

/** The URL path of assets. */
const FOLDER = '/dashboard/assets';

/** Reads all assets. */
export function loadAssets(): Assets {
  const own = readdirSync(OWN_FOLDER).map((name) => [name, join(OWN_FOLDER, name)] as const);
  const packaged = Object.entries(PACKAGED).map(([name, path]) => [name, require.resolve(path)] as const);
  return new Map(
    [...own, ...packaged].map(([name, file]) => {
      const body = readFileSync(file);
      const version = hash('sha256', body).slice(0, 16);
      const type = contentType(name) || 'application/octet-stream';
      return [name, { path: `${FOLDER}/${version}/${name}`, type, body, gzipped: gzipSync(body, { level: 9 }) }];
    }),
  );
}
