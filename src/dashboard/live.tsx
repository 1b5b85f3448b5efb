import type { Children } from '@kitajs/html';
import type { Html, Visit } from './page.ts';

interface LiveProps {
  readonly visit: Visit;
  /** Whether something in it is about to change; once nothing is, nobody asks any more. */
  readonly moves: boolean;
  readonly children: Children;
}

/** The part of a page that is renewed every few seconds while something in it moves. One on a page. */
export function Live({ visit, moves, children }: LiveProps): Html {
  if (!moves) return <div id="live">{children}</div>;
  return (
    <div
      id="live"
      hx-get={visit.url}
      hx-select="#live"
      hx-target="this"
      hx-swap="outerHTML"
      hx-trigger="every 3s"
      hx-disinherit="*"
    >
      {children}
    </div>
  );
}

/** Milliseconds for which one waits to hear of what was sent: not every provider reports. */
const REPORTED_WITHIN = 10 * 60_000;
/** Milliseconds before an email is due from which on somebody may wait for it. */
const DUE_SOON = 2 * 60_000;

/** Whether somebody who looks at an email or a chat-app message may wait for it to change. @param now Unix milliseconds */
export function isMoving(
  message: { readonly status: string; readonly scheduled_at?: string | null; readonly last_event_at: string },
  now = Date.now(),
): boolean {
  if (message.status === 'queued') return true;
  if (message.status === 'scheduled') return Date.parse(message.scheduled_at ?? '') < now + DUE_SOON;
  return message.status === 'sent' && Date.parse(message.last_event_at) > now - REPORTED_WITHIN;
}
