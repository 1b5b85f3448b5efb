import type { SmsSender } from '../../domain/sms/senders.ts';
import { latestOf } from '../postgres/page.ts';
import { type Db, queryOneRow, queryRow, queryRows } from '../postgres/pool.ts';

const SENDER = 'id, number, messaging_service_sid, countries, created_at';

export type OperatorSender = SmsSender & { readonly org_id: string };

/** @throws SQLSTATE 23505 if it is connected already */
export function insertSender(
  db: Db,
  orgId: string,
  { id, number, messaging_service_sid, countries }: Omit<SmsSender, 'created_at'>,
): Promise<SmsSender> {
  return queryOneRow(
    db,
    `INSERT INTO sms_senders (id, org_id, number, messaging_service_sid, countries)
     VALUES ($1, $2, $3, $4, $5) RETURNING ${SENDER}`,
    [id, orgId, number, messaging_service_sid, countries],
  );
}

/** Senders of an organization, newest first. */
export const listSenders = latestOf<SmsSender>('sms_senders', SENDER);

/** All connected senders, or those of one organization, newest first. */
export function listSendersOfAll(db: Db, orgId: string | null): Promise<OperatorSender[]> {
  return queryRows(
    db,
    `SELECT ${SENDER}, org_id FROM sms_senders
     WHERE $1::text IS NULL OR org_id = $1 ORDER BY created_at DESC, id DESC`,
    [orgId],
  );
}

/** Deletes a sender and its pause. @param sender its number or messaging service */
export function deleteSender(db: Db, orgId: string, sender: string): Promise<{ id: string } | undefined> {
  return queryRow(
    db,
    `WITH deleted AS (
       DELETE FROM sms_senders WHERE org_id = $1 AND (number = $2 OR messaging_service_sid = $2) RETURNING id
     ), pauses AS (
       DELETE FROM provider_pauses WHERE sender IN (SELECT id FROM deleted)
     )
     SELECT id FROM deleted`,
    [orgId, sender],
  );
}

/**
 * Chooses the sender for a recipient's country: one that names the country before one that serves all, then the oldest.
 * @param from a number or messaging service that it must be; null for any
 */
export function findSender(
  db: Db,
  orgId: string,
  from: string | null,
  country: string,
): Promise<{ id: string; sender: string } | undefined> {
  return queryRow(db, {
    name: 'find_sms_sender',
    text: `SELECT id, coalesce(number, messaging_service_sid) AS sender FROM sms_senders
           WHERE org_id = $1 AND ($2::text IS NULL OR number = $2 OR messaging_service_sid = $2)
             AND (countries = '{}' OR $3 = ANY (countries))
           ORDER BY countries = '{}', created_at, id LIMIT 1`,
    values: [orgId, from, country],
  });
}

/** The senders that an inbound message reached: first the number, and then the messaging service that it is in. */
export function findReceivers(
  db: Db,
  number: string,
  messagingServiceSid: string | null,
): Promise<{ org_id: string; sender: string }[]> {
  return queryRows(db, {
    name: 'find_sms_receivers',
    text: `SELECT org_id, coalesce(number, messaging_service_sid) AS sender FROM sms_senders
           WHERE number = $1 OR messaging_service_sid = $2 ORDER BY number NULLS LAST`,
    values: [number, messagingServiceSid],
  });
}
