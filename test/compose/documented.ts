import { readFileSync } from 'node:fs';
import { ROOT } from '../support/compose-file.ts';

/** The shell commands of the first block below a heading of docs/operating.md that needs Docker. */
export function documented(heading: string, project: string): string {
  const text = readFileSync(`${ROOT}docs/operating.md`, 'utf8');
  const section = text.split(`\n## ${heading}\n`)[1]?.split(/\n## /)[0] ?? '';
  const [, block] = /```sh docker\n(.*?)```/s.exec(section) ?? [];
  if (block === undefined) throw new Error(`docs/operating.md has no commands for Docker below ${heading}`);
  // The copy of this run has no history, and its volumes have the name of its own project.
  return block.replace(/^git pull.*\n/m, '').replaceAll('sendwright_', `${project}_`);
}
