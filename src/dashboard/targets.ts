/** The page about an object, or the list that contains it, by the prefix of its id; paths are below the dashboard's. */
const PAGES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    em: 'emails/:id',
    bt: 'batches/:id',
    wa: 'chatapp/:id',
    sms: 'sms/:id',
    dm: 'domains/:id',
    wh: 'webhooks/:id',
    num: 'numbers/:id',
    key: 'requests?key=:id',
    req: 'requests?request_id=:id',
    sup: 'suppressions',
    usr: 'members',
    inv: 'members',
  }),
);

/** Returns the path of an object's page; undefined if it no longer exists. @param existing the ids of objects with a page */
export function targetPath(id: string, existing: ReadonlySet<string>): string | undefined {
  const path = PAGES.get(prefixOf(id));
  if (path === undefined || (path.endsWith('/:id') && !existing.has(id))) return undefined;
  return `/dashboard/${path.replace(':id', encodeURIComponent(id))}`;
}

/** True if text looks like the id of an object that has a page of its own. */
export function isTargetId(text: string): boolean {
  return /^[a-z]+_[0-9a-z]{26}$/.test(text) && (PAGES.get(prefixOf(text))?.includes(':id') ?? false);
}

function prefixOf(id: string): string {
  return id.slice(0, Math.max(0, id.indexOf('_')));
}
