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
writeFileSync(
  inRoot('dist/tsconfig.json'),
  JSON.stringify({
    extends: '../tsconfig.json',
    compilerOptions: {
      noEmit: false,
      allowImportingTsExtensions: false,
      rewriteRelativeImportExtensions: true,
      rootDir: '..',
      outDir: '.',
    },
    include: ['../src', '../activities', '../workflows'],
    // What `npm start` embeds serves development; its parts are not installed in production.
    exclude: [
      '../src/main/embedded',
      '../src/main/start.ts',
      '../src/main/build.ts',
      '../src/main/simulator.ts',
      '../src/simulator',
    ],
  }),
);
const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const { status } = spawnSync(process.execPath, [compiler, '-p', inRoot('dist/tsconfig.json')], { stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);
for (const folder of ['src/store/migrations', 'src/dashboard/assets']) {
  cpSync(inRoot(folder), inRoot(`dist/${folder}`), { recursive: true });
}

const { code } = await bundleWorkflowCode({
  workflowsPath: inRoot('workflows/index.ts'),
  workflowInterceptorModules: [inRoot('workflows/interceptors.ts')],
  logger: new DefaultLogger('ERROR'),
});
writeFileSync(inRoot('dist/workflow-bundle.js'), code);
console.log('Built dist/: start with node dist/src/main/api.js and node dist/src/main/worker.js');
