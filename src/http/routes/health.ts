import { Type } from 'typebox';
import { ServiceError } from '../../domain/errors.ts';
import { hiddenRoute, route } from '../route.ts';
import { errorResponses, objectOf } from '../schemas/common.ts';

const Ok = objectOf('Health', { status: Type.Literal('ok') });

/** Redirects browsers from the root of the service to its dashboard. */
export const toDashboard = hiddenRoute({
  handler: async (_deps, _request, reply) => reply.redirect('/dashboard', 303),
});

export const apiDescription = hiddenRoute({
  handler: async (deps, _request, reply) => {
    reply.type('application/json; charset=utf-8');
    return deps.describeApi();
  },
});

export const healthz = route('getHealth', 'Check that the process is alive', {
  description: 'Checks only the process itself, not its database.',
  response: { 200: Ok, ...errorResponses(422) },
  handler: async () => ({ status: 'ok' }),
});

export const readyz = route('getReadiness', 'Check that the process can serve requests', {
  description: 'Checks Postgres and the schema that this version needs.',
  response: { 200: Ok, ...errorResponses(422, 500, 503) },
  handler: async ({ missingMigrations }) => {
    const missing = await missingMigrations();
    if (missing.length > 0) throw new ServiceError('unavailable', 'the database lacks migrations: npm run migrate');
    return { status: 'ok' };
  },
});

export const metrics = hiddenRoute({
  handler: async ({ metrics: { type, text } }, _request, reply) => {
    reply.type(type);
    return text();
  },
});
