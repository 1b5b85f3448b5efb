import { cacheFor } from '../../lib/cached.ts';
import { migrationNames, pendingMigrations } from '../../store/postgres/migrate.ts';
import type { Db } from '../../store/postgres/pool.ts';

/** Results are cached for this time, so that frequent requests of `/readyz` are cheap. */
const READY_TTL_MS = 1_000;

/** @returns a function that returns the names of pending migrations */
export function makeMigrationCheck(db: Db): () => Promise<readonly string[]> {
  let names: readonly string[] | undefined;
  return cacheFor(READY_TTL_MS, async () => pendingMigrations(db, (names ??= await migrationNames())));
}
