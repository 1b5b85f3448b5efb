import type { RouteRow } from '../route.ts';

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
