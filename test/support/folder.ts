import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** An empty folder that is removed at the end of the test. */
export async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'sendwright-folder-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
