import type { BounceReason } from './email/email.ts';

/** Further fields of a timeline entry, besides its type and time. */
export interface EventDetail {
  /** For a click: the target of the link. */
  readonly link?: string;
  /** For an open or click: a program and not a person caused it. */
  readonly machine?: true;
  /** For a bounce, delay or failure: a server's response, or why the email was given up. */
  readonly error?: string;
  readonly bounce_reason?: BounceReason;
  /** For chat-app messages and SMS: the provider's error code. */
  readonly error_code?: string;
  /** For a reschedule: the times before and after it, UTC with milliseconds. */
  readonly previous?: string;
  readonly scheduled_at?: string;
}

/** Maximum length of a link or an error in a timeline, in characters. */
const MAX_TEXT_LENGTH = 2_000;

/** Returns the details that are set, truncated for a timeline; undefined without any. */
export function eventDetail(detail: {
  readonly [Name in keyof EventDetail]?: EventDetail[Name] | undefined;
}): EventDetail | undefined {
  const entries = Object.entries(detail).flatMap(([name, value]) => {
    if (value === undefined) return [];
    return [[name, value === true ? value : value.slice(0, MAX_TEXT_LENGTH).toWellFormed()] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
