/**
 * Compiles the TypeScript of the service into a folder under node_modules/.cache and prints the folder's path. The layout is
 * that of the source, so files find each other and their data as in `dist/`. The folder is named after a hash of the sources
 * and of the project's path, since it has links to it, so nothing is compiled if they are unchanged. This is plain JavaScript,
 * since Node 20 does not run TypeScript.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  linkSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const CACHE = join(ROOT, 'node_modules/.cache/sendwright');
const SOURCES = ['src', 'activities', 'workflows', 'client', 'dev'];
/** A process that runs from an older folder may start another process from it, so the latest folders are not deleted. */
const KEPT_FOLDERS = 5;
const TYPESCRIPT = /\.tsx?$/;

/** @returns {Promise<string>} the folder with `dev/start.js` and all files that it needs */
export async function compileSources() {
  const paths = SOURCES.flatMap(filesIn);
  const folder = join(CACHE, `sources-${digest([ROOT, ...[...paths, 'package-lock.json'].map(stateOf)])}`);
  if (existsSync(folder)) {
    utimesSync(folder, new Date(), new Date());
    return folder;
  }
  console.error('Compiling the sources, which takes some seconds after a change');
  const unfinished = join(CACHE, `unfinished-${process.pid}`);
  rmSync(unfinished, { recursive: true, force: true });
  await compile(paths, unfinished);
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    // Another process has created the folder first.
    if (!existsSync(folder)) throw error;
    rmSync(unfinished, { recursive: true });
  }
  removeOld('sources-');
  removeOld('workflows-');
  return folder;
}

function filesIn(folder) {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(ROOT.length + 1))
    .sort();
}

function stateOf(path) {
  const { mtimeMs, size } = statSync(join(ROOT, path));
  return `${path} ${mtimeMs} ${size}`;
}

function digest(lines) {
  return createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 16);
}

async function compile(paths, folder) {
  const sources = paths.filter((path) => TYPESCRIPT.test(path));
  await build({
    ...OPTIONS,
    entryPoints: sources,
    outdir: folder,
    outbase: ROOT,
    sourcemap: true,
    sourcesContent: false,
    plugins: [{ name: 'file by file', setup: keepImports }],
  });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  linkOtherFiles(paths, folder);
  linkSync(await bundledWorkflows(folder), join(folder, 'workflow-bundle.js'));
}

const OPTIONS = {
  absWorkingDir: ROOT,
  bundle: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  target: 'node20',
  jsx: 'automatic',
  jsxImportSource: '@kitajs/html',
  tsconfigRaw: {},
  logLevel: 'error',
};

/** Leaves every import external, and replaces its extension by that of the compiled file. */
function keepImports(build) {
  build.onResolve({ filter: /^\.{1,2}\// }, ({ path, kind }) =>
    kind === 'entry-point' ? undefined : { path: path.replace(TYPESCRIPT, '.js'), external: true },
  );
}

/** Links files other than TypeScript; links a folder as a whole if it contains no TypeScript. */
function linkOtherFiles(paths, folder) {
  const compiled = new Set(SOURCES);
  for (const path of paths.filter((each) => TYPESCRIPT.test(each))) {
    for (let parent = dirname(path); parent !== '.'; parent = dirname(parent)) compiled.add(parent);
  }
  const links = new Set();
  for (let path of paths.filter((each) => !TYPESCRIPT.test(each))) {
    while (!compiled.has(dirname(path))) path = dirname(path);
    links.add(path);
  }
  // The API renders the documentation from this folder.
  links.add('docs');
  for (const path of links) symlinkSync(join(ROOT, path), join(folder, path));
}

/** Bundles the workflow code for workers. Bundling takes seconds, so the result is cached until that code changes. */
async function bundledWorkflows(folder) {
  const { outputFiles } = await build({
    ...OPTIONS,
    entryPoints: ['workflows/index.ts', 'workflows/interceptors.ts'],
    outdir: folder,
    write: false,
  });
  const bundle = join(
    CACHE,
    `workflows-${digest([...outputFiles.map(({ text }) => text), stateOf('package-lock.json')])}.js`,
  );
  if (!existsSync(bundle)) {
    const program = join(folder, 'dev/build/bundle-workflows.js');
    const unfinished = join(folder, 'workflows.js');
    const { status } = spawnSync(process.execPath, [program, unfinished], { cwd: ROOT, stdio: 'inherit' });
    if (status !== 0) throw new Error('the workflow code could not be bundled, see above');
    renameSync(unfinished, bundle);
  }
  utimesSync(bundle, new Date(), new Date());
  return bundle;
}

function removeOld(prefix) {
  const byAge = readdirSync(CACHE)
    .filter((name) => name.startsWith(prefix))
    .map((name) => join(CACHE, name))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const path of byAge.slice(KEPT_FOLDERS)) rmSync(path, { recursive: true, force: true });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(await compileSources());
}
