import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

/** `npm run build`: JavaScript, migrations and the workflow bundle into `dist/`, from which production runs. */
const root = fileURLToPath(new URL('../../', import.meta.url));
const inRoot = (path: string): string => `${root}${path}`;

rmSync(inRoot('dist'), { recursive: true, force: true });
mkdirSync(inRoot('dist'));
const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc');
compile('tsconfig.json', {
  compilerOptions: { rewriteRelativeImportExtensions: true, allowImportingTsExtensions: false },
  include: ['../src', '../activities', '../workflows'],
  // What `npm start` embeds serves development; its parts are not installed in production.
  exclude: [
    '../src/main/embedded',
    '../src/main/start.ts',
    '../src/main/build.ts',
    '../src/main/simulator.ts',
    '../src/simulator',
  ],
});
// Others write against the client; the service itself is nobody's library.
compile('tsconfig.client.json', {
  compilerOptions: { declaration: true, emitDeclarationOnly: true },
  include: ['../src/client'],
});
for (const folder of ['src/store/migrations', 'src/dashboard/assets']) {
  cpSync(inRoot(folder), inRoot(`dist/${folder}`), { recursive: true });
}

/** Compiles into `dist/`, by the project's own settings and these. Ends the process where that fails. */
function compile(
  file: string,
  { compilerOptions, ...rest }: { compilerOptions: object; include: string[]; exclude?: string[] },
) {
  const into = { noEmit: false, rootDir: '..', outDir: '.' };
  const config = { extends: '../tsconfig.json', compilerOptions: { ...into, ...compilerOptions }, ...rest };
  writeFileSync(inRoot(`dist/${file}`), JSON.stringify(config));
  const { status } = spawnSync(process.execPath, [compiler, '-p', inRoot(`dist/${file}`)], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

const { code } = await bundleWorkflowCode({
  workflowsPath: inRoot('workflows/index.ts'),
  workflowInterceptorModules: [inRoot('workflows/interceptors.ts')],
  logger: new DefaultLogger('ERROR'),
});
writeFileSync(inRoot('dist/workflow-bundle.js'), code);
console.log('Built dist/: start with node dist/src/main/api.js and node dist/src/main/worker.js');
