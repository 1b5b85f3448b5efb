import { readFile } from 'node:fs/promises';

/** The processes of `npm start`, in the order in which they stop. */
export const PARTS = ['api', 'worker', 'simulator', 'temporal', 'postgres'] as const;
export type PartName = (typeof PARTS)[number];

/** The file `dev.json`, in which a running `npm start` publishes its endpoints. A value is null if it is unknown. */
export interface DevFile {
  readonly base_url: string;
  readonly api_key: string;
  readonly organization_id: string;
  /** An address from which the organization may send. */
  readonly from: string;
  readonly domain: string;
  readonly sms_from: string;
  readonly dashboard_url: string;
  readonly dashboard_email: string;
  readonly dashboard_password: string;
  readonly temporal_address: string;
  readonly temporal_namespace: string;
  readonly temporal_ui_url: string | null;
  readonly database_url: string;
  readonly inbox_url: string | null;
  /** Process ids by name. */
  readonly processes: { readonly [K in PartName]?: number };
}

export const readDevFile = (path: string) => readJson<DevFile>(path);

/** Reads `settings.json`, which is beside `dev.json`: the settings of the running API and worker, for commands. */
export const readRunningSettings = (path: string) => readJson<Readonly<Record<string, string>>>(path);

async function readJson<T>(path: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as T;
  } catch {
    return undefined;
  }
}
