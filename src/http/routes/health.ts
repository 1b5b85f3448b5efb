import { Type } from 'typebox';
import { ServiceError } from '../../domain/errors.ts';
import { migrationNames, pendingMigrations } from '../../store/postgres/migrate.ts';
import type { Db } from '../../store/postgres/pool.ts';
import { type Route, route } from '../route.ts';
import { errorResponses } from '../schemas/common.ts';

const tags = ['Health'];
const Ok = Type.Object({ status: Type.Literal('ok') }, { title: 'Health' });

export const healthz = route(
  {
    tags,
    operationId: 'getHealth',
    summary: 'Is the process alive?',
    description: 'Looks at nothing but the process itself.',
    response: { 200: Ok, ...errorResponses(422) },
  },
  async () => ({ status: 'ok' }),
);

/** The metrics for Prometheus, rendered for each request, and their content type. */
export interface Metrics {
  readonly type: string;
  readonly text: () => Promise<string>;
}

export function metrics({ type, text }: Metrics): Route {
  return route({ tags, summary: 'Metrics for Prometheus', hide: true }, async (_request, reply) => {
    reply.type(type);
    return text();
  });
}

/** Caches the result of `/readyz`, so that frequent requests are cheap. */
const READY_TTL_MS = 1_000;

export function readyz(db: Db) {
  let latest: { readonly at: number; readonly missing: Promise<readonly string[]> } | undefined;
  let names: readonly string[] | undefined;
  const check = async (): Promise<readonly string[]> => pendingMigrations(db, (names ??= await migrationNames()));
  const missingMigrations = (): Promise<readonly string[]> => {
    const now = performance.now();
    if (!latest || now - latest.at >= READY_TTL_MS) latest = { at: now, missing: check() };
    return latest.missing;
  };
  return route(
    {
      tags,
      operationId: 'getReadiness',
      summary: 'Can the process serve?',
      description: 'Looks for Postgres and for the schema this version needs.',
      response: { 200: Ok, ...errorResponses(422, 500, 503) },
    },
    async () => {
      const missing = await missingMigrations();
      if (missing.length > 0) throw new ServiceError('unavailable', 'the database lacks migrations: npm run migrate');
      return { status: 'ok' };
    },
  );
}
