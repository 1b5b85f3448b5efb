import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { ROOT } from './compose-file.ts';

const IMPORT = /^(?:import|export)\b(?:[^'"]*?\bfrom)?\s*['"]([^'"]+)['"]|\bimport\(['"]([^'"]+)['"]\)/gm;

/**
 * The packages that a program in `dist/` loads, by the files that it imports one after the other. What is loaded by a
 * computed name is not found.
 */
export function packagesOf(program: string): Map<string, string> {
  const packages = new Map<string, string>();
  const seen = new Set<string>();
  const waiting = [join(ROOT, program)];
  for (let file; (file = waiting.pop()) !== undefined;) {
    if (seen.has(file)) continue;
    seen.add(file);
    for (const [, stated, loaded] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
      const name = stated ?? loaded ?? '';
      if (name.startsWith('.')) waiting.push(resolve(dirname(file), name));
      else if (!isBuiltin(name)) packages.set(name.split('/', name.startsWith('@') ? 2 : 1).join('/'), file);
    }
  }
  return packages;
}
