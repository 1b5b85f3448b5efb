import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { compile, inRoot, runProgram, writeClientTypes } from './compile.ts';

/**
 * `npm run build`: builds JavaScript, migrations, documentation and the workflow bundle into `dist/`, from which production
 * runs.
 */
rmSync(inRoot('dist'), { recursive: true, force: true });
mkdirSync(inRoot('dist'));
const config = {
  extends: '../tsconfig.json',
  compilerOptions: {
    noEmit: false,
    rootDir: '..',
    outDir: '.',
    rewriteRelativeImportExtensions: true,
    allowImportingTsExtensions: false,
  },
  include: ['../src', '../activities', '../workflows'],
};
writeClientTypes();
writeFileSync(inRoot('dist/tsconfig.json'), JSON.stringify(config));
compile(inRoot('dist'));
// With type declarations: other projects import `sendwright/client`, but no other part of the service.
compile(inRoot('client'));
runProgram('dev/build/docs-site.ts');
for (const folder of ['src/store/migrations', 'src/dashboard/assets']) {
  cpSync(inRoot(folder), inRoot(`dist/${folder}`), { recursive: true });
}

const bundler = [...process.execArgv, inRoot('dev/build/bundle-workflows.ts'), 'dist/workflow-bundle.js'];
execFileSync(process.execPath, bundler, { cwd: inRoot(''), stdio: 'inherit' });
console.log('Built dist/: start with node dist/src/main/api.js and node dist/src/main/worker.js');
