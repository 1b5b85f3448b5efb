import { migrationNames, pendingMigrations } from '../../store/postgres/migrate.ts';
import type { Db } from '../../store/postgres/pool.ts';

/** Caches the result, so that frequent requests of `/readyz` are cheap. */
const READY_TTL_MS = 1_000;

/** @returns a function that names the migrations that the database lacks */
export function makeMigrationCheck(db: Db): () => Promise<readonly string[]> {
  let latest: { readonly at: number; readonly missing: Promise<readonly string[]> } | undefined;
  let names: readonly string[] | undefined;
  const check = async (): Promise<readonly string[]> => pendingMigrations(db, (names ??= await migrationNames()));
  return () => {
    const now = performance.now();
    if (!latest || now - latest.at >= READY_TTL_MS) latest = { at: now, missing: check() };
    return latest.missing;
  };
}
