import type { BounceReason } from './email/email.ts';

/** What an entry of a timeline states besides its type and time. */
export interface EventDetail {
  /** Of a click: where the link leads. */
  readonly link?: string;
  /** Of an open or click: a program caused it, not a person. */
  readonly machine?: true;
  /** Of a bounce, a delay or a failure: the answer of a server, or why it was given up. */
  readonly error?: string;
  readonly bounce_reason?: BounceReason;
  /** The provider's own code of an error, of chat-app messages and SMS. */
  readonly error_code?: string;
  /** Of a reschedule: the times before and after it, UTC with milliseconds. */
  readonly previous?: string;
  readonly scheduled_at?: string;
}

/** Characters of a link or an error that a timeline keeps. */
const MAX_TEXT_LENGTH = 2_000;

/** Returns the details that there are, shortened to what a timeline keeps; undefined without any. */
export function eventDetail(detail: {
  readonly [Name in keyof EventDetail]?: EventDetail[Name] | undefined;
}): EventDetail | undefined {
  const given = Object.entries(detail).flatMap(([name, value]) => {
    if (value === undefined) return [];
    return [[name, value === true ? value : value.slice(0, MAX_TEXT_LENGTH).toWellFormed()] as const];
  });
  return given.length === 0 ? undefined : Object.fromEntries(given);
}
