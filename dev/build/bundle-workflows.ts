import { writeFileSync } from 'node:fs';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

/** Bundles the workflow code of the working directory into the file that the command line names. */
const [file = 'workflow-bundle.js'] = process.argv.slice(2);
const { code } = await bundleWorkflowCode({
  workflowsPath: `${process.cwd()}/workflows/index.ts`,
  workflowInterceptorModules: [`${process.cwd()}/workflows/interceptors.ts`],
  logger: new DefaultLogger('ERROR'),
});
writeFileSync(file, code);
