import { isTlsFailure, isUnreachable } from '../../store/postgres/pool.ts';
import { exitWith } from '../process.ts';
import { readCommandSettings } from './command-settings.ts';

/** Returns `DATABASE_URL`, otherwise the database of the `npm start` that runs in `SENDWRIGHT_HOME`. */
export async function databaseUrl(): Promise<string> {
  return (await readCommandSettings('DATABASE_URL')).DATABASE_URL;
}

const LACKS_MIGRATIONS = 'the database lacks migrations: npm run migrate';
/** Error messages by SQLSTATE for a database that responds but cannot be used. */
const UNUSABLE_REASONS: Readonly<Record<string, string>> = {
  '28P01': 'the database refuses the password in DATABASE_URL',
  '28000': 'the database refuses the user in DATABASE_URL',
  '3D000': 'the server has no database of the name in DATABASE_URL',
  '42501': 'the user in DATABASE_URL may not do this in the database',
  '42P01': LACKS_MIGRATIONS,
  '42703': LACKS_MIGRATIONS,
  '42883': LACKS_MIGRATIONS,
  '25006': 'the database is read-only: DATABASE_URL must name the primary, not a replica',
  '53100': 'the disk of the database is full',
  '53300': 'the database has no connection left: raise max_connections, or stop what uses them',
  '57014': 'the database canceled a statement: it took longer than statement_timeout, or an administrator canceled it',
  '55P03': 'others hold locks in the database that this needs: try again later',
};

const TLS_REMEDY =
  'append sslmode=verify-full&sslrootcert=FILE to DATABASE_URL, where FILE holds the certificate of its authority, or sslmode=disable for a server without TLS';

/** Ends this process with a message if the database cannot be used; rethrows any other error. */
export function exitWithoutDatabase(error: unknown): never {
  const sentence = UNUSABLE_REASONS[(error as { code?: string }).code ?? ''];
  if (sentence !== undefined) exitWith(sentence);
  if (isTlsFailure(error)) {
    exitWith(`the TLS connection to the database failed: ${(error as Error).message}; ${TLS_REMEDY}`);
  }
  if (isUnreachable(error)) exitWith('the database cannot be reached: is it running, and is DATABASE_URL right?');
  throw error;
}
