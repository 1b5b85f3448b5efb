import { Type } from 'typebox';
import { ServiceError } from '../../domain/errors.ts';
import { pendingMigrations } from '../../store/migrate.ts';
import type { Db } from '../../store/pool.ts';
import { route } from '../route.ts';
import { errorResponses } from '../schemas/common.ts';

const tags = ['Health'];
const Ok = Type.Object({ status: Type.Literal('ok') });

export const healthz = route(
  { tags, summary: 'Is the process alive?', response: { 200: Ok, ...errorResponses(422) } },
  async () => ({ status: 'ok' }),
);

export function readyz(db: Db) {
  return route(
    {
      tags,
      summary: 'Can the process serve?',
      description: 'Looks for Postgres and for the schema this version needs.',
      response: { 200: Ok, ...errorResponses(422, 500, 503) },
    },
    async () => {
      const missing = await pendingMigrations(db);
      if (missing.length > 0) throw new ServiceError('unavailable', 'the database lacks migrations: npm run migrate');
      return { status: 'ok' };
    },
  );
}
