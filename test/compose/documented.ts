import { readFileSync } from 'node:fs';
import { blocks } from '../support/documents.ts';
import { ROOT } from '../support/root.ts';

const PATH = 'docs/maintenance.md';

/** The shell commands of the first block below a heading of docs/maintenance.md that needs Docker. */
export function documented(heading: string, project: string): string {
  const [, section = ''] = readFileSync(`${ROOT}${PATH}`, 'utf8').split(`\n## ${heading}\n`);
  const text = section.split(/\n## /)[0] as string;
  const block = blocks({ path: PATH, text }, 'sh').find(({ info }) => info.includes('docker'));
  if (block === undefined) throw new Error(`${PATH} has no commands for Docker below ${heading}`);
  // The copy of this run has no history, and its volumes have the name of its own project.
  return block.text.replace(/^git pull.*\n/m, '').replaceAll('sendwright_', `${project}_`);
}
