import { type Db, queryOneValue } from './pool.ts';

/** Returns the time of the database's clock. */
export async function readClock(db: Db): Promise<Date> {
  const ms = await queryOneValue<number>(db, {
    name: 'read_clock',
    text: 'SELECT floor(extract(epoch FROM now()) * 1000)::float8',
    values: [],
  });
  return new Date(ms);
}
