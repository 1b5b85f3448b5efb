import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { ROOT } from './root.ts';

const IMPORT = /^(?:import|export)\b(?:[^'"]*?\bfrom)?\s*['"]([^'"]+)['"]|\bimport\(['"]([^'"]+)['"]\)/gm;

/**
 * The packages that a program in `dist/` imports, directly or not, each with an importing file. Computed names are not found.
 */
export function packagesOf(program: string): Map<string, string> {
  const packages = new Map<string, string>();
  const seen = new Set<string>();
  const pending = [join(ROOT, program)];
  for (let file; (file = pending.pop()) !== undefined;) {
    if (seen.has(file)) continue;
    seen.add(file);
    for (const [, imported, loaded] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
      const name = imported ?? loaded ?? '';
      if (name.startsWith('.')) pending.push(resolve(dirname(file), name));
      else if (!isBuiltin(name)) packages.set(name.split('/', name.startsWith('@') ? 2 : 1).join('/'), file);
    }
  }
  return packages;
}
