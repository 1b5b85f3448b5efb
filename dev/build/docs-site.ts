import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { renderSite } from '../../src/site/render/site.ts';
import { fileOf } from '../../src/site/site.ts';
import { describeApi } from './api-description.ts';
import { inRoot } from './compile.ts';

/** `npm run docs:site`, also part of `npm run build`: renders the documentation to files, which the API serves. */
const FOLDER = inRoot('dist/site');

rmSync(FOLDER, { recursive: true, force: true });
for (const [path, content] of await renderSite(await describeApi())) {
  const file = join(FOLDER, fileOf(path));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}
