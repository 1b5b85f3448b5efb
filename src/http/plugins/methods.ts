import type { FastifyInstance } from 'fastify';
import type { RouteRow } from '../route.ts';
import { pathOf } from './target.ts';

/** The constraint of a route with parameters: it does not match a path of the table that has none. */
export const PARAMETERS = 'parameters';

/** Adds the constraint. Without it, PATCH /v1/emails/batch would match PATCH /v1/emails/:id instead of being 405. */
export function addParametersConstraint(app: FastifyInstance, table: readonly RouteRow[]): void {
  const fixedPaths = new Set(table.map(([, url]) => url).filter((url) => !url.includes(':')));
  app.addConstraintStrategy({
    name: PARAMETERS,
    storage: () => new Map(),
    deriveConstraint: ({ url = '' }) => !fixedPaths.has(decodeURIComponent(pathOf(url))),
  });
}

/**
 * Returns the methods of the routes that match a path, in the order of the table.
 * @param path escaped, without its query string
 */
export function methodsOf(table: readonly RouteRow[], path: string): string[] {
  const parts = path.split('/').map(decodeURIComponent);
  const matching = table.filter(([, url]) => matches(url.split('/'), parts));
  // The router prefers a route without parameters.
  const exact = matching.filter(([, url]) => !url.includes(':'));
  const methods = (exact.length > 0 ? exact : matching).map(([method]) => String(method));
  return [...new Set(methods)];
}

function matches(pattern: readonly string[], parts: readonly string[]): boolean {
  return (
    pattern.length === parts.length &&
    pattern.every((part, index) => (part.startsWith(':') ? parts[index] !== '' : part === parts[index]))
  );
}
