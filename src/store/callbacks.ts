import type { Db } from './pool.ts';

/** Keeps what a provider posted that changed nothing, as it came. */
export async function keepCallback(db: Db, provider: string, body: string): Promise<void> {
  await db.query({
    name: 'keep_callback',
    text: `INSERT INTO provider_callbacks (provider, body) VALUES ($1, $2)`,
    values: [provider, body],
  });
}

/** Forgets what was kept for 30 days, the oldest first. @returns how many */
export async function deleteOldCallbacks(db: Db, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `DELETE FROM provider_callbacks
     WHERE id IN (SELECT id FROM provider_callbacks ORDER BY id LIMIT $1) AND received_at <= now() - interval '720 hours'`,
    [limit],
  );
  return rowCount ?? 0;
}

/** Whose email it is; undefined when there is none with this id. */
export async function findOrganizationOf(db: Db, emailId: string): Promise<string | undefined> {
  const { rows } = await db.query<{ org_id: string }>({
    name: 'find_organization_of_email',
    text: `SELECT org_id FROM emails WHERE id = $1`,
    values: [emailId],
  });
  return rows[0]?.org_id;
}
