import { rename, writeFile } from 'node:fs/promises';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { bundleWorkflows } from '../../dev/build/workflow-code.ts';
import { exists } from '../../dev/environment/cache.ts';
import { provided } from './provided.ts';
import { ROOT } from './root.ts';

/** Logs only errors of the SDK. Must be called before anything connects. */
export function silenceTemporal(): void {
  const logger = new DefaultLogger('ERROR');
  Runtime.install({ logger, telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } } });
}

/** The bundled workflow code, which the first test of a run creates for all. */
export async function workflowBundle(): Promise<{ codePath: string }> {
  const codePath = provided('TEST_WORKFLOW_BUNDLE');
  if (await exists(codePath)) return { codePath };
  const code = await bundleWorkflows(ROOT);
  // Concurrent tests each write a complete file.
  const unfinished = `${codePath}.${process.pid}`;
  await writeFile(unfinished, code);
  await rename(unfinished, codePath);
  return { codePath };
}
