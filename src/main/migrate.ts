import { migrate } from '../store/postgres/migrate.ts';
import { databaseUrl, exitWithoutDatabase } from './wiring/command-database.ts';

/** `npm run migrate`: migrates the database to the schema of this version. */
const url = await databaseUrl();
try {
  const applied = await migrate(url);
  console.log(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`);
} catch (error) {
  exitWithoutDatabase(error);
}
