import type { EmailStatus } from '../../src/domain/email/email.ts';
import { newId } from '../../src/lib/ids.ts';
import { insertOrganization } from '../../src/store/accounts/organizations.ts';
import { insertDomain } from '../../src/store/domains/domains.ts';
import { type Acceptance, acceptEmails, type NewEmail } from '../../src/store/emails/accept.ts';
import { TIMELINE_OF } from '../../src/store/emails/emails.ts';
import type { Db } from '../../src/store/postgres/pool.ts';

export const DOMAIN = 'acme.example';

/** A new organization that has verified a domain. @returns its id */
export async function organization(db: Db, domain = DOMAIN): Promise<string> {
  const orgId = newId('org');
  await insertOrganization(db, orgId, 'Acme');
  await insertDomain(db, newId('dm'), orgId, domain, true);
  return orgId;
}

/** An email with the required fields only. */
export function newEmail(fields: Partial<NewEmail> = {}): NewEmail {
  const id = newId('em');
  return {
    id,
    event_id: newId('evt'),
    batch_id: null,
    from_domain: DOMAIN,
    from: `hello@${DOMAIN}`,
    // A different one for each email, since a bounce suppresses the address.
    to: [`person-${id}@example.net`],
    cc: null,
    bcc: null,
    reply_to: null,
    subject: 'Hello',
    html: null,
    text: 'Hi.',
    marketing: false,
    tags: [],
    headers: {},
    scheduled_at: null,
    ...fields,
  };
}

/** Stores valid emails. */
export async function accept(db: Db, orgId: string, emails: readonly NewEmail[]): Promise<Acceptance[]> {
  const answers = await acceptEmails(db, orgId, null, emails);
  const refused = answers.find(({ refusal }) => refusal !== null);
  if (refused) throw new Error(`refused: ${refused.refusal}`);
  return answers;
}

/** Stores one email. @returns its id */
export async function acceptOne(db: Db, orgId: string, fields: Partial<NewEmail> = {}): Promise<string> {
  const email = newEmail(fields);
  await accept(db, orgId, [email]);
  return email.id;
}

/** Stores emails together. @returns their ids */
export async function acceptMany(db: Db, orgId: string, count: number): Promise<string[]> {
  const emails = Array.from({ length: count }, () => newEmail());
  await accept(db, orgId, emails);
  return emails.map(({ id }) => id);
}

/** A time relative to the clock of this process, as the store takes it. */
export function inMs(milliseconds: number): string {
  return new Date(Date.now() + milliseconds).toISOString();
}

/** A time relative to now() of the transaction, in whole milliseconds. */
export async function inInterval(db: Db, interval: string): Promise<string> {
  const { rows } = await db.query<{ at: string }>(
    `SELECT to_char((date_trunc('milliseconds', now()) + $1::interval) AT TIME ZONE 'UTC',
                    'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at`,
    [interval],
  );
  return rows[0]?.at as string;
}

/** Sets the status of an email, with the columns that the table requires for it. */
export async function force(db: Db, id: string, status: EmailStatus): Promise<void> {
  await db.query(
    `UPDATE emails SET status = $2, error = CASE WHEN $2 = 'failed' THEN 'earlier' END,
       bounce_reason = CASE WHEN $2 = 'bounced' THEN 'mailbox_full' END,
       scheduled_at = CASE WHEN $2 = 'scheduled' THEN coalesce(scheduled_at, now() + interval '1 hour') END
     WHERE id = $1`,
    [id, status],
  );
}

export interface EmailRow {
  status: EmailStatus;
  error: string | null;
  bounce_reason: string | null;
  provider: string | null;
  provider_message_id: string | null;
  scheduled_at: string | null;
  schedule_version: number;
  last_event_at: string;
}

export async function emailRow(db: Db, id: string): Promise<EmailRow> {
  const { rows } = await db.query<EmailRow>(
    `SELECT status, error, bounce_reason, provider, provider_message_id, scheduled_at, schedule_version, last_event_at
     FROM emails WHERE id = $1`,
    [id],
  );
  if (!rows[0]) throw new Error(`no email ${id}`);
  return rows[0];
}

/** The types of an email's events, oldest first, without `email.`. */
export async function timeline(db: Db, id: string): Promise<string[]> {
  const { rows } = await db.query<{ type: string }>(
    `SELECT replace(type, 'email.', '') AS type FROM emails CROSS JOIN LATERAL ${TIMELINE_OF('emails')} AS event
     WHERE emails.id = $1 ORDER BY event.created_at, event.id`,
    [id],
  );
  return rows.map(({ type }) => type);
}

/** Minutes until upkeep next checks an email, rounded; null before the first check, Infinity after the last. */
export async function nextLook(db: Db, id: string): Promise<number | null> {
  const { rows } = await db.query<{ minutes: number | null }>(
    `SELECT CASE WHEN look_at = 'infinity' THEN 'Infinity' ELSE extract(epoch FROM look_at - now()) / 60 END::float8
       AS minutes FROM emails WHERE id = $1`,
    [id],
  );
  const minutes = rows[0]?.minutes ?? null;
  return minutes === null ? null : Math.round(minutes);
}
