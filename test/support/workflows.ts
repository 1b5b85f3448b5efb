import { access, rename, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger, Runtime } from '@temporalio/worker';
import { provided } from './provided.ts';

/** For bundlers whose progress nobody reads. */
const quiet = new DefaultLogger('ERROR');

/** Workers in this process say only what breaks. Call it before anything connects. */
export function silenceTemporal(): void {
  Runtime.install({ logger: quiet, telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } } });
}

/** The workflow code as workers take it. Whoever needs it first in a run makes it for all: it takes seconds. */
export async function workflowBundle(): Promise<{ codePath: string }> {
  const codePath = provided('TEST_WORKFLOW_BUNDLE');
  const isThere = await access(codePath).then(
    () => true,
    () => false,
  );
  if (isThere) return { codePath };
  const workflowsPath = fileURLToPath(new URL('../../workflows/index.ts', import.meta.url));
  const workflowInterceptorModules = [fileURLToPath(new URL('../../workflows/interceptors.ts', import.meta.url))];
  const { code } = await bundleWorkflowCode({ workflowsPath, workflowInterceptorModules, logger: quiet });
  // Two may be first: each puts a whole file there.
  const unfinished = `${codePath}.${process.pid}`;
  await writeFile(unfinished, code);
  await rename(unfinished, codePath);
  return { codePath };
}
