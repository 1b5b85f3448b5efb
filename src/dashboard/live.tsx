import type { Children } from '@kitajs/html';
import type { Html } from './page.ts';

interface LiveProps {
  /** The page's path with its query string. It differs from the URL of a refused form, whose answer is the same page. */
  readonly path: string;
  readonly shouldRefresh: boolean;
  /** The selector of another part that refreshes with it, such as `#state`. A form in it would be replaced while it is used. */
  readonly also?: string | undefined;
  readonly children: Children;
}

/** The part of a page that refreshes itself while `shouldRefresh` is true. At most one per page; `also` names a second one. */
export function Live({ path, shouldRefresh, also, children }: LiveProps): Html {
  if (!shouldRefresh) return <div id="live">{children}</div>;
  return (
    <div
      id="live"
      hx-get={path}
      hx-select="#live"
      hx-select-oob={also}
      hx-target="this"
      hx-swap="outerHTML"
      hx-trigger="every 3s"
      hx-disinherit="*"
    >
      {children}
    </div>
  );
}

/** Returns true for the first page of a list, where new rows appear, and for another one while a row of it may change soon. */
export function mayListChangeSoon<Row>(
  cursor: string | undefined,
  rows: readonly Row[],
  mayRowChangeSoon: (row: Row) => boolean,
): boolean {
  return cursor === undefined || rows.some(mayRowChangeSoon);
}

/** A sent message is refreshed at most this long, since not every provider reports. */
const REPORT_TIMEOUT_MS = 10 * 60_000;
const DUE_SOON_MS = 2 * 60_000;

/** Returns true if an email, chat-app message or SMS may change soon. */
export function mayChangeSoon(message: {
  readonly status: string;
  readonly scheduled_at?: string | null;
  readonly last_event_at: string;
}): boolean {
  const now = Date.now();
  if (message.status === 'queued') return true;
  if (message.status === 'scheduled') return Date.parse(message.scheduled_at ?? '') < now + DUE_SOON_MS;
  return message.status === 'sent' && Date.parse(message.last_event_at) > now - REPORT_TIMEOUT_MS;
}
