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

/** What the emails of a list must have, all of it. */
export interface Conditions {
  readonly orgId: string;
  readonly tags: readonly Tag[];
  /** Alternatives; null is any. */
  readonly statuses: readonly EmailStatus[] | null;
  readonly bounceReason: BounceReason | null;
  readonly search: Search;
  /** The time of the oldest. */
  readonly since: string;
}

/** One statement's part of a page. */
export interface Walk {
  readonly found: EmailSummary[];
  /** How far it looked; null when it came to the end of what it walks. */
  readonly next: Cursor | null;
}
/** @param after where the walk begins @param want most emails to find */
export type Walker = (after: Cursor, want: number) => Promise<Walk>;

/** A row of a walk: whether it has what SQL can check, and whether it is the last one that the statement looked at. */
export type WalkedRow = EmailSummary &
  Pick<Searchable, 'cc' | 'bcc'> & { readonly fits: boolean; readonly last: boolean };

export const SUMMARY = `email.id, email.batch_id, email."from", email."to", email.cc, email.bcc, email.subject, email.marketing,
  email.tags, email.status, email.error, email.bounce_reason, email.created_at, email.scheduled_at, email.last_event_at`;

const mayMatch = (field: string, patterns: string): string =>
  `(${patterns}::text[] IS NULL OR octet_length(${field}) <> length(${field}) OR lower(${field} COLLATE "C") ~ ALL (${patterns}))`;

/** SQL of whether `email` fits, by the values `$1` to `$11` of `valuesOf`; about a search, `isMatch` decides in the end. */
export const FITS = `(email.tags @> $6 AND ($7::text[] IS NULL OR email.status = ANY ($7))
  AND ($8::text IS NULL OR email.bounce_reason = $8)
  AND ${mayMatch(`concat_ws(' ', email."to"::text, email.cc::text, email.bcc::text)`, '$9')}
  AND ${mayMatch('email."from"', '$10')} AND ${mayMatch('email.subject', '$11')})`;

/** SQL of the position and time of rows in a list. */
export const WITHIN = (id = 'id'): string => `(created_at, ${id}) < ($2::timestamptz, $3) AND created_at >= $4`;

/** The values that all statements of lists share: organization, position, oldest time, most rows, conditions. */
export function valuesOf(conditions: Conditions, after: Cursor, want: number): unknown[] {
  const { orgId, since, tags, statuses, bounceReason, search } = conditions;
  const { recipients, sender, subject } = patternsOf(search);
  return [
    ...[orgId, ...cursorValues(after), since, want],
    ...[JSON.stringify(tags), statuses, bounceReason, recipients, sender, subject],
  ];
}

/** The walk that a statement made. @param want its LIMIT */
export function walkOf(rows: readonly WalkedRow[], search: Search, want: number): Walk {
  const found: EmailSummary[] = [];
  let next: Cursor | null = null;
  for (const { fits, last, cc, bcc, ...email } of rows) {
    if (fits && isMatch({ ...email, cc, bcc }, search)) found.push(email);
    if (last) next = email;
  }
  // Rows behind the limit were not looked at, although some before it do not match.
  if (rows.length === want && found.length < want) next = rows.at(-1) ?? null;
  return { found, next };
}
