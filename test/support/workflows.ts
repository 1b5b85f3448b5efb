import { access, rename, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger, Runtime } from '@temporalio/worker';
import { provided } from './provided.ts';

const errorLogger = new DefaultLogger('ERROR');

/** Logs only errors of the SDK. Must be called before anything connects. */
export function silenceTemporal(): void {
  Runtime.install({ logger: errorLogger, telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } } });
}

/** The bundled workflow code, which the first test of a run creates for all. */
export async function workflowBundle(): Promise<{ codePath: string }> {
  const codePath = provided('TEST_WORKFLOW_BUNDLE');
  const isThere = await access(codePath).then(
    () => true,
    () => false,
  );
  if (isThere) return { codePath };
  const workflowsPath = fileURLToPath(new URL('../../workflows/index.ts', import.meta.url));
  const workflowInterceptorModules = [fileURLToPath(new URL('../../workflows/interceptors.ts', import.meta.url))];
  const { code } = await bundleWorkflowCode({ workflowsPath, workflowInterceptorModules, logger: errorLogger });
  // Concurrent tests each write a complete file.
  const unfinished = `${codePath}.${process.pid}`;
  await writeFile(unfinished, code);
  await rename(unfinished, codePath);
  return { codePath };
}
