import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readSettings } from './env.ts';

/** Where the database is: `DATABASE_URL`, else that of the `npm start` that runs in `SENDWRIGHT_HOME`. */
export async function databaseUrl(): Promise<string> {
  const { DATABASE_URL, SENDWRIGHT_HOME } = readSettings();
  if (DATABASE_URL !== undefined) return DATABASE_URL;
  try {
    const dev = JSON.parse(await readFile(join(SENDWRIGHT_HOME, 'dev.json'), 'utf8')) as { database_url: string };
    return dev.database_url;
  } catch {
    return readSettings('DATABASE_URL').DATABASE_URL;
  }
}
