import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** An empty folder that is removed at the end of the test, or of the file with `{ after }` of node:test. */
export async function temporaryFolder(t: { after: (work: () => Promise<void>) => void }): Promise<string> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'sendwright-folder-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
