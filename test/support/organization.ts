import type { Pool } from '../../src/store/postgres/pool.ts';
import { organization } from '../store/mail.ts';
import { useDatabase } from './database.ts';

/** A database with one organization. */
export interface OrganizationFixture {
  readonly url: string;
  readonly pool: Pool;
  readonly orgId: string;
}

/** Creates the database of a test file, with one organization in it, and drops it after the file's tests. */
export async function organizationFixture(connections?: number): Promise<OrganizationFixture> {
  const { url, pool } = await useDatabase(connections);
  return { url, pool, orgId: await organization(pool) };
}
