import { migrate } from '../store/migrate.ts';
import { isUnreachable } from '../store/pool.ts';
import { databaseUrl } from './database-url.ts';
import { endWith } from './process.ts';

/** `npm run migrate`: brings the database to this version's schema. */
const url = await databaseUrl();
try {
  const applied = await migrate(url);
  console.log(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`);
} catch (error) {
  if (isUnreachable(error)) endWith('the database cannot be reached: is it running, and is DATABASE_URL right?');
  throw error;
}
