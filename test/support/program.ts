import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const COMPILE = fileURLToPath(new URL('../../src/main/compile-sources.js', import.meta.url));

/** The path of a program of src/main/ as `npm start` runs it, compiled if its source has changed. */
export function programPath(name: string): string {
  const folder = execFileSync(process.execPath, [COMPILE], { encoding: 'utf8' }).trim();
  return join(folder, `src/main/${name}.js`);
}
