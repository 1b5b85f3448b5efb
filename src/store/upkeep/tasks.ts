import { type Db, execute, queryRows } from '../postgres/pool.ts';
import { columns } from '../postgres/columns.ts';

export interface UpkeepTask {
  readonly name: string;
  readonly intervalSeconds: number;
}

/** Registers the tasks of this version, and removes those that it no longer has. */
export async function registerUpkeepTasks(db: Db, tasks: readonly UpkeepTask[]): Promise<void> {
  await execute(db, {
    name: 'register_upkeep_tasks',
    text: `WITH registered AS (
             INSERT INTO upkeep_tasks (name, interval_seconds)
             SELECT * FROM unnest($1::text[], $2::integer[]) AS task(name, interval_seconds) ORDER BY name COLLATE "C"
             ON CONFLICT (name) DO UPDATE SET interval_seconds = EXCLUDED.interval_seconds
           )
           DELETE FROM upkeep_tasks WHERE name <> ALL ($1)`,
    values: columns(tasks, 'name', 'intervalSeconds'),
  });
}

export async function recordUpkeepSuccess(db: Db, name: string): Promise<void> {
  await execute(db, {
    name: 'note_upkeep_success',
    text: `UPDATE upkeep_tasks SET succeeded_at = now() WHERE name = $1`,
    values: [name],
  });
}

/** Returns how long ago each task last ran to its end, by the database's clock. */
export function readUpkeepAges(db: Db): Promise<{ task: string; age_seconds: number; interval_seconds: number }[]> {
  return queryRows(db, {
    name: 'read_upkeep_ages',
    text: `SELECT name AS task, interval_seconds,
                  greatest(extract(epoch FROM now() - succeeded_at), 0)::float8 AS age_seconds
           FROM upkeep_tasks ORDER BY name`,
  });
}
