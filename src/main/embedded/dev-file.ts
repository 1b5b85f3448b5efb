import { readFile, rm } from 'node:fs/promises';
import { writeAtomically } from './atomic-file.ts';
import type { PartName } from './supervisor.ts';

/** What a running `npm start` tells other programs in `dev.json`; null for what is not embedded and not known. */
export interface DevFile {
  readonly base_url: string;
  readonly api_key: string;
  readonly organization_id: string;
  /** An address that the organization may send from. */
  readonly from: string;
  readonly domain: string;
  readonly dashboard_url: string;
  readonly dashboard_email: string;
  readonly dashboard_password: string;
  readonly temporal_address: string;
  readonly temporal_namespace: string;
  readonly temporal_ui_url: string | null;
  readonly database_url: string;
  readonly inbox_url: string | null;
  /** Process ids. */
  readonly processes: Partial<Record<PartName, number>>;
}

/** What the file says; undefined without one. */
export async function readDevFile(path: string): Promise<DevFile | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as DevFile;
  } catch {
    return undefined;
  }
}

/** Writes the file as a whole; only its owner may read it, since it holds a key. Calls must not overlap. */
export async function writeDevFile(path: string, contents: DevFile): Promise<void> {
  await writeAtomically(path, `${JSON.stringify(contents, null, 2)}\n`);
}

export async function removeDevFile(path: string): Promise<void> {
  await rm(path, { force: true });
}
