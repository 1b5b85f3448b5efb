/**
 * Normalizes a request target (RFC 9112 §3.2) for the router. It removes scheme and host of an absolute target, and escapes
 * the `%` of a path with invalid or NUL escapes. So every request is routed, and authenticated before a 404.
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

/** Postgres does not store NUL, so no id contains it. */
function isText(path: string): boolean {
  try {
    return !decodeURIComponent(path).includes('\0');
  } catch {
    return false;
  }
}
