import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isUnreachable } from '../../store/postgres/pool.ts';
import { readSettings } from '../env.ts';
import { endWith } from '../process.ts';

/** Where the database is: `DATABASE_URL`, else that of the `npm start` that runs in `SENDWRIGHT_HOME`. */
export async function databaseUrl(): Promise<string> {
  const { DATABASE_URL, SENDWRIGHT_HOME } = readSettings();
  if (DATABASE_URL !== undefined) return DATABASE_URL;
  return (await runningHere(SENDWRIGHT_HOME)) ?? readSettings('DATABASE_URL').DATABASE_URL;
}

/** Undefined when nothing runs in this home. */
async function runningHere(home: string): Promise<string | undefined> {
  try {
    const dev = JSON.parse(await readFile(join(home, 'dev.json'), 'utf8')) as { database_url?: unknown };
    return typeof dev.database_url === 'string' ? dev.database_url : undefined;
  } catch {
    return undefined;
  }
}

/** SQLSTATEs of a database that answers and still is of no use, in words for who started this process. */
const USELESS: Readonly<Record<string, string>> = {
  '28P01': 'the database refuses the password in DATABASE_URL',
  '28000': 'the database refuses the user in DATABASE_URL',
  '3D000': 'the server has no database of the name in DATABASE_URL',
  '42501': 'the user in DATABASE_URL may not do this in the database',
  '42P01': 'the database lacks migrations: npm run migrate',
};

/** Ends this process with a sentence when `error` says that the database cannot be used; throws any other error. */
export function endWithoutDatabase(error: unknown): never {
  if (isUnreachable(error)) endWith('the database cannot be reached: is it running, and is DATABASE_URL right?');
  const sentence = USELESS[(error as { code?: string }).code ?? ''];
  if (sentence !== undefined) endWith(sentence);
  throw error;
}
