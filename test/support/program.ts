import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { programOf } from '../../dev/environment/node-part.ts';
import { ROOT } from './root.ts';

const COMPILE = join(ROOT, 'dev/compile-sources.js');

/** The path of a process as `npm start` runs it, compiled if its source has changed. */
export function programPath(name: string): string {
  const folder = execFileSync(process.execPath, [COMPILE], { encoding: 'utf8' }).trim();
  return join(folder, `${programOf(name)}.js`);
}
