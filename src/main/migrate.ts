import { migrate } from '../store/postgres/migrate.ts';
import { databaseUrl, endWithoutDatabase } from './wiring/database-url.ts';

/** `npm run migrate`: brings the database to this version's schema. */
const url = await databaseUrl();
try {
  const applied = await migrate(url);
  console.log(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`);
} catch (error) {
  endWithoutDatabase(error);
}
