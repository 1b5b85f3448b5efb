import assert from 'node:assert/strict';
import { newId } from '../../src/lib/ids.ts';
import type { SuppressionOrigin } from '../../src/domain/email/suppression.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { addSuppressions } from '../../src/store/suppressions/suppressions.ts';

/** A suppression in an answer of the API. */
export interface Suppression extends Readonly<Record<string, unknown>> {
  readonly id: string;
  readonly email: string;
  readonly origin: SuppressionOrigin;
}

export interface Page {
  readonly suppressions: readonly Suppression[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

let count = 0;

/** A new address. */
export function address(): string {
  return `person${++count}@example.net`;
}

/** Adds an address of any origin. @returns the id of its suppression */
export async function putSuppression(
  db: Db,
  orgId: string,
  email: string,
  origin: SuppressionOrigin,
  fields: object = {},
): Promise<string> {
  const id = newId('sup');
  const entry = { id, org_id: orgId, email, origin, ...fields };
  assert.deepEqual(await addSuppressions(db, [entry]), [id]);
  return id;
}

/** The webhook events that an organization gets while `work` runs. */
export async function eventsDuring(
  db: Db,
  orgId: string,
  work: () => Promise<unknown>,
): Promise<{ type: string; message_id: string | null; data: Record<string, unknown> }[]> {
  const endpoint = newId('wh');
  await db.query(
    `INSERT INTO webhook_endpoints (id, org_id, url, events, secret) VALUES ($1, $2, 'https://example.com', '{}', '')`,
    [endpoint, orgId],
  );
  await work();
  const { rows } = await db.query<{ type: string; message_id: string | null; data: Record<string, unknown> }>(
    `SELECT event.type, event.message_id, event.data FROM webhook_deliveries JOIN webhook_events AS event ON event.id = event_id
     WHERE endpoint_id = $1 ORDER BY event.id`,
    [endpoint],
  );
  await db.query('DELETE FROM webhook_endpoints WHERE id = $1', [endpoint]);
  return rows;
}
