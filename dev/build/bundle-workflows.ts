import { writeFileSync } from 'node:fs';
import { bundleWorkflows } from './workflow-code.ts';

/** Bundles the workflow code of the working directory into the file that the command line names. */
const [file = 'workflow-bundle.js'] = process.argv.slice(2);
writeFileSync(file, await bundleWorkflows(process.cwd()));
