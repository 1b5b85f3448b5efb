import type { BounceReason, EmailStatus, Tag } from '../../domain/email/email.ts';
import { isMatch, patternsOf, type Search, type Searchable } from '../../domain/email/search.ts';
import { type Cursor, cursorValues } from '../postgres/page.ts';

/** One email as lists show it. */
export interface EmailSummary {
  id: string;
  batch_id: string | null;
  from: string;
  to: string[];
  subject: string;
  marketing: boolean;
  tags: Tag[];
  status: EmailStatus;
  error: string | null;
  bounce_reason: BounceReason | null;
  created_at: string;
  scheduled_at: string | null;
  last_event_at: string;
}

/** The conditions of a list; an email must meet all of them. */
export interface Conditions {
  readonly orgId: string;
  readonly tags: readonly Tag[];
  /** An email must have one of these; null for any status. */
  readonly statuses: readonly EmailStatus[] | null;
  readonly bounceReason: BounceReason | null;
  readonly search: Search;
  /** The earliest time of acceptance, inclusive. */
  readonly since: string;
}

/** The emails of a page that one statement has found. */
export interface Walk {
  readonly found: EmailSummary[];
  /** The last email that it has read, where the next statement continues; null at the end of its index. */
  readonly next: Cursor | null;
}
/** @param after the position at which the walk begins @param want the maximum number of emails to find */
export type Walker = (after: Cursor, want: number) => Promise<Walk>;

/** A row of a walk. `fits`: it meets the conditions that SQL can check. `last`: it is the last row that the statement has read. */
export type WalkedRow = EmailSummary &
  Pick<Searchable, 'cc' | 'bcc'> & { readonly fits: boolean; readonly last: boolean };

export const SUMMARY = `email.id, email.batch_id, email."from", email."to", email.cc, email.bcc, email.subject, email.marketing,
  email.tags, email.status, email.error, email.bounce_reason, email.created_at, email.scheduled_at, email.last_event_at`;

const mayMatch = (field: string, patterns: string): string =>
  `(${patterns}::text[] IS NULL OR octet_length(${field}) <> length(${field}) OR lower(${field} COLLATE "C") ~ ALL (${patterns}))`;

/** SQL that is true if `email` fits the values `$1` to `$11` of `valuesOf`. A search needs `isMatch` as well. */
export const FITS = `(email.tags @> $6 AND ($7::text[] IS NULL OR email.status = ANY ($7))
  AND ($8::text IS NULL OR email.bounce_reason = $8)
  AND ${mayMatch(`concat_ws(' ', email."to"::text, email.cc::text, email.bcc::text)`, '$9')}
  AND ${mayMatch('email."from"', '$10')} AND ${mayMatch('email.subject', '$11')})`;

/** SQL that limits the rows of a list to those after a position and not older than `since`. */
export const WITHIN = (id = 'id'): string => `(created_at, ${id}) < ($2::timestamptz, $3) AND created_at >= $4`;

/** Returns the values that all statements of lists share: organization, position, earliest time, maximum number, conditions. */
export function valuesOf(conditions: Conditions, after: Cursor, want: number): unknown[] {
  const { orgId, since, tags, statuses, bounceReason, search } = conditions;
  const { recipients, sender, subject } = patternsOf(search);
  return [
    ...[orgId, ...cursorValues(after), since, want],
    ...[JSON.stringify(tags), statuses, bounceReason, recipients, sender, subject],
  ];
}

/** Returns the walk of a statement. @param want its LIMIT */
export function walkOf(rows: readonly WalkedRow[], search: Search, want: number): Walk {
  const found: EmailSummary[] = [];
  let next: Cursor | null = null;
  for (const { fits, last, cc, bcc, ...email } of rows) {
    if (fits && isMatch({ ...email, cc, bcc }, search)) found.push(email);
    if (last) next = email;
  }
  // More rows may follow the limit, although some of those before it do not match.
  if (rows.length === want && found.length < want) next = rows.at(-1) ?? null;
  return { found, next };
}
