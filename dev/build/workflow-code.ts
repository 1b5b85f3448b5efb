import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

/**
 * Bundles the workflow code of a folder. The modules keep no state of a workflow, so they are loaded once for all workflows of a
 * thread.
 * @param folder the root of the sources
 */
export async function bundleWorkflows(folder: string): Promise<string> {
  const workflowsPath = join(folder, 'workflows/index.ts');
  const interceptors = join(folder, 'workflows/interceptors.ts');
  const { code } = await bundleWorkflowCode({
    workflowsPath,
    workflowInterceptorModules: [interceptors],
    preloadModules: [workflowsPath, interceptors],
    logger: new DefaultLogger('ERROR'),
  });
  return code;
}
