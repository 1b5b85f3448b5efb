import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { WorkflowHandle } from '@temporalio/client';

/**
 * Histories of real runs, one per path through a workflow, recorded when that path was new. Today's workflow code must
 * replay them, because an email can wait for 30 days. `npm run histories` records new paths and never replaces a file.
 */
const FOLDER = new URL('histories/', import.meta.url);

/** Writes the history of a workflow that has ended, unless this run does not record or a file of this name exists. */
export async function keepHistory(name: string, handle: WorkflowHandle): Promise<void> {
  if (process.env['HISTORIES'] !== 'record') return;
  const file = new URL(`${name.replace(/\W+/g, '-').toLowerCase()}.json`, FOLDER);
  await mkdir(FOLDER, { recursive: true });
  const { events } = JSON.parse(historyToJSON(await handle.fetchHistory())) as { events: unknown[] };
  const lines = events.map((event) => JSON.stringify(event, withoutMachine));
  await writeFile(file, `{"events":[\n${lines.join(',\n')}\n]}\n`, { flag: 'wx' }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  });
}

/** Masks process names, host names and folders of the recording machine. */
function withoutMachine(key: string, value: unknown): unknown {
  if (key === 'identity') return 'recorded';
  return key === 'stackTrace' ? '' : value;
}

/** All recorded histories by file name. */
export async function keptHistories(): Promise<Map<string, unknown>> {
  const names = (await readdir(FOLDER)).sort();
  const histories = await Promise.all(names.map((name) => readFile(new URL(name, FOLDER), 'utf8')));
  return new Map(names.map((name, index) => [name, JSON.parse(histories[index] as string) as unknown]));
}
