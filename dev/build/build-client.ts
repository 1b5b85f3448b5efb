import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { compile, inRoot, writeClientTypes } from './compile.ts';

/**
 * `npm run build:client [-- FOLDER]`: packs `@sendwright/client` into a tarball in a folder, `dist/` by default, and prints
 * the tarball's path.
 */
const target = resolve(process.argv[2] ?? inRoot('dist'));
const staging = mkdtempSync(join(tmpdir(), 'sendwright-client-'));
try {
  writeClientTypes();
  compile(inRoot('client'), '--outDir', staging);
  for (const file of ['client/package.json', 'client/README.md', 'LICENSE']) {
    copyFileSync(inRoot(file), join(staging, file.replace('client/', '')));
  }
  mkdirSync(target, { recursive: true });
  const options = { cwd: staging, encoding: 'utf8', shell: process.platform === 'win32' } as const;
  const tarball = execFileSync('npm', ['pack', '--silent', '--pack-destination', target], options).trim();
  console.log(join(target, tarball));
} finally {
  rmSync(staging, { recursive: true });
}
