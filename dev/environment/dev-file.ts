import { rm } from 'node:fs/promises';
import type { DevFile } from '../../src/main/dev-file.ts';
import { writeAtomically } from './atomic-file.ts';

/** Writes `dev.json`. Only the owner may read the file, since it contains an API key. Calls must not overlap. */
export async function writeDevFile(path: string, contents: DevFile): Promise<void> {
  await writeAtomically(path, `${JSON.stringify(contents, null, 2)}\n`);
}

export async function removeDevFile(path: string): Promise<void> {
  await rm(path, { force: true });
}
