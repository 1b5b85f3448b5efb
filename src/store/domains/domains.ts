import type { DomainStatus, Findings, Progress, Step } from '../../domain/senders/sender-domain.ts';
import type { ProviderRecords } from '../../domain/senders/sender-records.ts';
import { latestOf } from '../postgres/page.ts';
import { type Db, execute, executeOne, queryColumn, queryRow, queryRows, queryValue } from '../postgres/pool.ts';
import { columns } from '../postgres/columns.ts';

/** A registered domain as lists show it. */
export interface Domain {
  id: string;
  org_id: string;
  /** An A-label in lower case. */
  name: string;
  status: DomainStatus;
  /** Trusted by the operator: verified regardless of DNS. */
  trusted: boolean;
  created_at: string;
  /** When it was verified; null unless it is. */
  verified_at: string | null;
  last_checked_at: string | null;
  next_check_at: string | null;
  /** True if opens and clicks of email from it are tracked. */
  open_tracking: boolean;
  click_tracking: boolean;
}

/** A domain with the fields that determine its DNS records. */
export interface WholeDomain extends Domain {
  token: string;
  dkim_public: string | null;
  findings: Findings;
  /** Its id and required records at Postmark; null if Postmark does not have it. */
  provider_id: number | null;
  provider: ProviderRecords | null;
}

const DOMAIN = `id, org_id, name, status, trusted, created_at, verified_at, last_checked_at, next_check_at,
  open_tracking, click_tracking`;
const WHOLE = `
  SELECT ${DOMAIN.replace(/\w+/g, 'domain.$&')}, domain.token, domain.dkim_public, domain.findings,
         provider.provider_id::float8 AS provider_id, provider.details AS provider
  FROM domains AS domain LEFT JOIN provider_domains AS provider USING (name)`;

/**
 * Adds a domain by its A-label. A domain that is not trusted is checked immediately.
 * @param trusted verified without looking at DNS
 * @returns undefined if another organization has verified it
 * @throws SQLSTATE 23505 if this organization has it, or another one has just verified it
 */
export function insertDomain(
  db: Db,
  id: string,
  orgId: string,
  name: string,
  trusted: boolean,
): Promise<Domain | undefined> {
  return queryRow(
    db,
    `INSERT INTO domains (id, org_id, name, status, trusted, verified_at, next_check_at)
     SELECT $1, $2, $3, CASE WHEN $4 THEN 'verified' ELSE 'pending' END, $4, CASE WHEN $4 THEN now() END,
            CASE WHEN NOT $4 THEN now() END
     WHERE NOT EXISTS (SELECT FROM domains WHERE name = $3 AND status = 'verified' AND org_id <> $2)
     RETURNING ${DOMAIN}`,
    [id, orgId, name, trusted],
  );
}

/** Finds domains of an organization by name. */
export function findDomains(db: Db, orgId: string, names: readonly string[]): Promise<Domain[]> {
  return queryRows(db, `SELECT ${DOMAIN} FROM domains WHERE org_id = $1 AND name = ANY($2)`, [orgId, names]);
}

/** The names of domains of an organization. */
export function domainNames(db: Db, orgId: string, ids: readonly string[]): Promise<string[]> {
  return queryColumn(db, `SELECT name FROM domains WHERE org_id = $1 AND id = ANY ($2)`, [orgId, ids]);
}

/** @param orgId the organization that must have it; null for any */
export function findDomain(db: Db, orgId: string | null, id: string): Promise<WholeDomain | undefined> {
  return queryRow(db, `${WHOLE} WHERE domain.id = $1 AND ($2::text IS NULL OR domain.org_id = $2)`, [id, orgId]);
}

/** Domains of an organization, newest first. */
export const listDomains = latestOf<Domain>('domains', DOMAIN);

/**
 * Changes the tracking of email that is sent from now on. @param opens null leaves it, as does `clicks`
 * @returns false if there is no such domain
 */
export async function updateTracking(
  db: Db,
  orgId: string,
  id: string,
  opens: boolean | null,
  clicks: boolean | null,
): Promise<boolean> {
  return executeOne(
    db,
    `UPDATE domains SET open_tracking = coalesce($3, open_tracking), click_tracking = coalesce($4, click_tracking)
     WHERE id = $1 AND org_id = $2`,
    [id, orgId, opens, clicks],
  );
}

/** The organization that has verified a domain; at most one has. */
export function findVerifiedHolder(db: Db, name: string): Promise<string | undefined> {
  return queryValue(db, `SELECT org_id FROM domains WHERE name = $1 AND status = 'verified'`, [name]);
}

/** Deletes a domain with its key. Upkeep deletes it at the provider. @returns the deleted domain */
export function deleteDomain(db: Db, orgId: string, id: string): Promise<Domain | undefined> {
  return queryRow(
    db,
    `WITH deleted AS (
       DELETE FROM domains WHERE id = $1 AND org_id = $2 RETURNING ${DOMAIN}
     ), unused AS (
       UPDATE provider_domains SET unused_since = now(), retry_at = now() WHERE name IN (SELECT name FROM deleted)
       RETURNING name
     ), enqueued AS (
       INSERT INTO outbox (message_id, action) SELECT 'clearProviderDomains', 'chore' FROM unused
     )
     SELECT * FROM deleted`,
    [id, orgId],
  );
}

/**
 * Claims domains that are due for a check, by setting their next check to the end of a lease. The result of the check sets it
 * again (saveCheck). If there is none, the domain is due when the lease lapses.
 */
export function claimDueDomains(db: Db, limit: number): Promise<string[]> {
  return queryColumn(db, {
    name: 'claim_due_domains',
    text: `WITH due AS MATERIALIZED (
             SELECT id FROM domains WHERE next_check_at <= now() ORDER BY next_check_at LIMIT $1
             FOR NO KEY UPDATE SKIP LOCKED
           )
           UPDATE domains SET next_check_at = now() + interval '2 minutes' FROM due WHERE domains.id = due.id
           RETURNING domains.id`,
    values: [limit],
  });
}

/**
 * Requests a check, unless there was a check on request in the last `seconds`. A failed domain starts over immediately.
 * @returns true if it is to be checked now; undefined if there is no such domain
 */
export function requestCheck(db: Db, orgId: string, id: string, seconds: number): Promise<boolean | undefined> {
  return queryValue(
    db,
    `WITH asked AS MATERIALIZED (
       SELECT id, status = 'failed' AS begun,
              status = 'failed' OR asked_at IS NULL OR asked_at < clock_timestamp() - make_interval(secs => $3) AS "check"
       FROM domains WHERE id = $1 AND org_id = $2 FOR UPDATE
     ), recorded AS (
       UPDATE domains SET
         asked_at      = CASE WHEN asked."check" THEN clock_timestamp() ELSE asked_at END,
         status        = CASE WHEN asked.begun THEN 'pending' ELSE status END,
         tried_since   = CASE WHEN asked.begun THEN now() ELSE tried_since END,
         tries         = CASE WHEN asked.begun THEN 0 ELSE tries END,
         misses        = CASE WHEN asked.begun THEN 0 ELSE misses END,
         next_check_at = CASE WHEN asked.begun THEN now() + interval '1 minute' ELSE next_check_at END
       FROM asked WHERE domains.id = asked.id
     )
     SELECT "check" FROM asked`,
    [id, orgId, seconds],
  );
}

/** Stores a domain's DKIM key unless it has one. @param sealed the private key */
export async function saveDkimKey(db: Db, id: string, publicKey: string, sealed: Buffer): Promise<void> {
  await execute(db, `UPDATE domains SET dkim_public = $2, dkim_key = $3 WHERE id = $1 AND dkim_key IS NULL`, [
    id,
    publicKey,
    sealed,
  ]);
}

/** A registration of a name, locked. */
export interface Registration extends Progress {
  id: string;
  org_id: string;
  name: string;
  next_check_at: string | null;
}

/** Locks all registrations of a name, in the order of their ids: verifying one may fail the others. */
export function lockRegistrations(db: Db, name: string): Promise<Registration[]> {
  return queryRows(
    db,
    `SELECT id, org_id, name, status, trusted, tries, misses, next_check_at,
            (extract(epoch FROM clock_timestamp() - tried_since) * 1000)::float8 AS "waitedMs"
     FROM domains WHERE name = $1 ORDER BY id FOR UPDATE`,
    [name],
  );
}

/** Records the result of a check. @param published true if our key is in DNS; undefined if DNS could not be queried */
export async function saveCheck(
  db: Db,
  id: string,
  findings: Findings,
  { status, tries, misses, nextInMs }: Step,
  published: boolean | undefined,
): Promise<void> {
  await execute(
    db,
    `UPDATE domains SET
       findings = $2, status = $3, tries = $4, misses = $5, dkim_published = coalesce($6, dkim_published),
       verified_at = CASE WHEN $3 = 'verified' THEN coalesce(verified_at, now()) END,
       last_checked_at = clock_timestamp(),
       next_check_at = CASE WHEN $7 THEN next_check_at ELSE clock_timestamp() + $8 * interval '1 millisecond' END
     WHERE id = $1`,
    [id, JSON.stringify(findings), status, tries, misses, published ?? null, nextInMs === undefined, nextInMs ?? null],
  );
}

/** Fails registrations of a name that another organization has verified. */
export async function failDomains(db: Db, ids: readonly string[], findings: Findings): Promise<void> {
  if (ids.length === 0) return;
  await execute(
    db,
    `UPDATE domains SET status = 'failed', verified_at = NULL, next_check_at = NULL, findings = findings || $2
     WHERE id = ANY ($1)`,
    [ids, JSON.stringify(findings)],
  );
}

/** The sender domain of emails. */
export interface SendingDomain {
  id: string;
  org_id: string;
  name: string;
  status: DomainStatus;
  /** Its sealed private DKIM key; null if we do not sign or the public key is not published. */
  dkim_key: Buffer | null;
  open_tracking: boolean;
  click_tracking: boolean;
}

/** The domains of many emails in one query; those that are not registered are missing. */
export async function findSendingDomains(
  db: Db,
  inputs: readonly { readonly org_id: string; readonly name: string }[],
): Promise<SendingDomain[]> {
  if (inputs.length === 0) return [];
  return queryRows(db, {
    name: 'find_sending_domains',
    text: `SELECT domain.id, domain.org_id, domain.name, domain.status,
                  CASE WHEN domain.dkim_published THEN domain.dkim_key END AS dkim_key,
                  domain.open_tracking, domain.click_tracking
           FROM unnest($1::text[], $2::text[]) AS input(org_id, name) JOIN domains AS domain USING (org_id, name)`,
    values: columns(inputs, 'org_id', 'name'),
  });
}
