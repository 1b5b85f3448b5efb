/**
 * Normalizes a request target (RFC 9112 §3.2) for the router. Removes scheme and host of an absolute target. If a path has
 * invalid or NUL escapes, escapes its `%`. So every request is routed, and authenticated before a 404.
 */
export function normalizeTarget(target: string): string {
  const url = target.replace(/^https?:\/\/[^/?#]*\/?/i, '/');
  const path = pathOf(url);
  return isText(path) ? url : path.replaceAll('%', '%25') + url.slice(path.length);
}

/** Returns the path of a normalized target, still escaped. */
export function pathOf(url: string): string {
  return /^[^?#]*/.exec(url)?.[0] ?? '';
}

/** Returns true if a path has only valid escapes and no NUL, which Postgres cannot store. */
function isText(path: string): boolean {
  try {
    return !decodeURIComponent(path).includes('\0');
  } catch {
    return false;
  }
}
