import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { expireBodies } from '../../src/upkeep/body-retention.ts';
import { changeBodyRetention } from '../../src/accounts/organizations.ts';
import { accept, force, inMs, newEmail, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';

const DAY = 24 * 3_600_000;

const { pool } = await useDatabase();

let organizations = 0;
const domains = new Map<string, string>();
const domainOf = (orgId: string) => domains.get(orgId) ?? '';
/** An organization with its own domain. */
async function newOrganization(): Promise<string> {
  const domain = `org${organizations++}.example`;
  const orgId = await organization(pool, domain);
  domains.set(orgId, domain);
  return orgId;
}

describe('bodies expire', () => {
  /** Runs the maintenance task to its end. @returns how many emails it checked */
  async function run(defaultDays: number, limit = 3): Promise<number> {
    let [done, from]: [number, string | null] = [0, null];
    // As many steps as a run of the workflow has.
    for (let step = 0; step < 1_000; step++) {
      const result: Awaited<ReturnType<typeof expireBodies>> = await expireBodies(pool, defaultDays, from, limit);
      done += result.done;
      from = result.next;
      if (from === null) return done;
    }
    throw new Error('it does not end');
  }

  /** Emails that were accepted and sent so many days ago. @returns their ids */
  async function insertSentDaysAgo(
    orgId: string,
    days: number,
    count: number,
    status: 'sent' | 'queued' = 'sent',
  ): Promise<string[]> {
    const from_domain = domainOf(orgId);
    const emails = Array.from({ length: count }, () => newEmail({ from_domain, headers: { 'X-A': 'a' } }));
    await accept(pool, orgId, emails);
    const ids = emails.map(({ id }) => id);
    await pool.query(`UPDATE emails SET created_at = now() - make_interval(hours => $2) WHERE id = ANY ($1)`, [
      ids,
      days * 24,
    ]);
    for (const id of ids) await force(pool, id, status);
    return ids;
  }

  async function kept(ids: readonly string[]): Promise<number> {
    const { rows } = await pool.query<{ bodies: number; headers: number }>(
      `SELECT count(body.email_id)::int AS bodies, count(*) FILTER (WHERE headers::text <> '{}')::int AS headers
       FROM emails LEFT JOIN email_bodies AS body ON body.email_id = id WHERE id = ANY ($1)`,
      [ids],
    );
    assert.equal(rows[0]?.bodies, rows[0]?.headers, 'bodies and headers go together');
    return rows[0]?.bodies ?? -1;
  }

  it('of other organizations between the steps of a large one', async () => {
    const [first, second] = [await newOrganization(), await newOrganization()].toSorted() as [string, string];
    const [large, small] = [await insertSentDaysAgo(first, 8, 6), await insertSentDaysAgo(second, 8, 1)];
    let from: string | null = null;
    do ({ next: from } = await expireBodies(pool, 7, from, 2));
    while (from !== null && (await kept(small)) > 0);
    assert.equal(await kept(small), 0);
    assert.ok((await kept(large)) > 0, `${await kept(large)} of the large one are left`);
    await run(7);
    assert.equal(await kept(large), 0);
  });

  it('after the setting or the retention of their organization, in steps', async () => {
    const [ours, keeping, longer] = [await newOrganization(), await newOrganization(), await newOrganization()];
    await changeBodyRetention(pool, keeping, 0);
    await changeBodyRetention(pool, longer, 30);
    const old = await insertSentDaysAgo(ours, 8, 10);
    const fresh = await insertSentDaysAgo(ours, 6, 2);
    const [always, month] = [await insertSentDaysAgo(keeping, 400, 2), await insertSentDaysAgo(longer, 8, 2)];
    const expired = await insertSentDaysAgo(longer, 31, 2);
    assert.equal(await run(0), 2, 'without the setting, only those of organizations with their own retention');
    assert.deepEqual([await kept(old), await kept(expired)], [10, 0]);
    await run(7);
    assert.deepEqual([await kept(old), await kept(fresh), await kept(always), await kept(month)], [0, 2, 2, 2]);
    assert.equal(await run(7), 0, 'it does not check erased emails again');
    await changeBodyRetention(pool, longer, 7);
    await run(0);
    assert.equal(await kept(month), 0, 'a shorter retention counts from now on');
  });

  it('not before the email is sent', async () => {
    const ours = await newOrganization();
    await changeBodyRetention(pool, ours, 7);
    const [queued = ''] = await insertSentDaysAgo(ours, 9, 1, 'queued');
    const [copied = ''] = await insertSentDaysAgo(ours, 9, 1);
    await pool.query(`UPDATE emails SET marketing = true WHERE id = $1`, [copied]);
    await pool.query(
      `INSERT INTO email_recipients (email_id, recipient, status) VALUES ($1, 'a@b.example', 'queued')`,
      [copied],
    );
    const [late = ''] = await insertSentDaysAgo(ours, 9, 1);
    await pool.query(`UPDATE emails SET scheduled_at = $2 WHERE id = $1`, [late, inMs(-2 * DAY)]);
    await run(0);
    assert.equal(await kept([queued, copied, late]), 3);

    await force(pool, queued, 'sent');
    await pool.query(`UPDATE email_recipients SET status = 'sent' WHERE email_id = $1`, [copied]);
    await pool.query(`UPDATE held_bodies SET look_at = now() - interval '1 second'`);
    await run(0);
    assert.deepEqual([await kept([queued, copied]), await kept([late])], [0, 1]);

    await pool.query(`UPDATE emails SET scheduled_at = $2 WHERE id = $1`, [late, inMs(-8 * DAY)]);
    await pool.query(`UPDATE held_bodies SET look_at = now() - interval '1 second'`);
    await run(0);
    assert.equal(await kept([late]), 0);
    const { rows } = await pool.query('SELECT FROM held_bodies');
    assert.equal(rows.length, 0);
  });

  it('also if content was kept forever for a time while an email waited', async () => {
    const ours = await newOrganization();
    await changeBodyRetention(pool, ours, 7);
    const ids = await insertSentDaysAgo(ours, 9, 1, 'queued');
    await run(0);
    await changeBodyRetention(pool, ours, 0);
    await pool.query(`UPDATE held_bodies SET look_at = now() - interval '1 second'`);
    await run(0);
    await force(pool, ids[0] ?? '', 'sent');
    assert.equal(await kept(ids), 1);
    await changeBodyRetention(pool, ours, 7);
    await run(0);
    assert.equal(await kept(ids), 0);
  });

  it('of more organizations than a run has steps', async () => {
    await pool.query(
      `INSERT INTO organizations (id, name, body_retention_days) SELECT 'org_00' || n, n, 1 FROM generate_series(1, 1100) AS n`,
    );
    const last = await newOrganization();
    const { rows } = await pool.query(`SELECT FROM organizations WHERE id > $1`, [last]);
    assert.equal(rows.length, 0, 'it is visited last');
    await changeBodyRetention(pool, last, 1);
    const ids = await insertSentDaysAgo(last, 2, 1);
    await run(0);
    assert.equal(await kept(ids), 0);
  });
});
