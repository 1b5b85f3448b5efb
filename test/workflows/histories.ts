import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { WorkflowHandle } from '@temporalio/client';

/**
 * Histories of real runs, one for each way an email can go, kept as they were when it was new: workflow code of today must
 * replay them, since emails wait for up to 30 days. `npm run histories` adds those of new ways and never replaces one.
 */
const FOLDER = new URL('histories/', import.meta.url);

/** Keeps the history of a workflow that has ended, if this run records and there is none of this name yet. */
export async function keepHistory(name: string, handle: WorkflowHandle): Promise<void> {
  if (process.env['HISTORIES'] !== 'record') return;
  const file = new URL(`${name.replace(/\W+/g, '-').toLowerCase()}.json`, FOLDER);
  await mkdir(FOLDER, { recursive: true });
  // Which process of which machine it was is nobody's business, nor in which folder.
  const history = historyToJSON(await handle.fetchHistory())
    .replace(/"identity": "[^"]*"/g, '"identity": "recorded"')
    .replace(/"stackTrace": "(?:[^"\\]|\\.)*"/g, '"stackTrace": ""');
  await writeFile(file, `${history}\n`, { flag: 'wx' }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  });
}

/** All kept histories by name. */
export async function keptHistories(): Promise<Map<string, unknown>> {
  const names = (await readdir(FOLDER)).sort();
  const histories = await Promise.all(names.map((name) => readFile(new URL(name, FOLDER), 'utf8')));
  return new Map(names.map((name, index) => [name, JSON.parse(histories[index] as string) as unknown]));
}
