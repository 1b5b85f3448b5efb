/**
 * A request's target (RFC 9112 §3.2) as the router reads it: without the scheme and host of an absolute one, and with a
 * path whose %-escapes are broken, or stand for NUL, taken letter by letter. So every request finds its way to a route or
 * to none, and is asked for its key before that shows.
 */
export function routable(target: string): string {
  const url = target.replace(/^https?:\/\/[^/?#]*\/?/i, '/');
  const path = pathOf(url);
  return isText(path) ? url : path.replaceAll('%', '%25') + url.slice(path.length);
}

/** The path of a routable target, still escaped. */
export function pathOf(url: string): string {
  return /^[^?#]*/.exec(url)?.[0] ?? '';
}

/** Postgres takes no NUL in a text, so no id holds one. */
function isText(path: string): boolean {
  try {
    return !decodeURIComponent(path).includes('\0');
  } catch {
    return false;
  }
}
