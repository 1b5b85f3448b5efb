import { fileURLToPath } from 'node:url';
import { DefaultLogger, Runtime } from '@temporalio/worker';

/** For bundlers whose progress nobody reads. */
export const quiet = new DefaultLogger('ERROR');

/** Workers in this process say only what breaks. Call it before anything connects. */
export function silenceTemporal(): void {
  Runtime.install({ logger: quiet, telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } } });
}

/** Where the workflow code begins. */
export const workflowsPath = fileURLToPath(new URL('../../workflows/index.ts', import.meta.url));
/** All that is bundled for a worker. */
export const workflowCode = {
  workflowsPath,
  workflowInterceptorModules: [fileURLToPath(new URL('../../workflows/interceptors.ts', import.meta.url))],
};
