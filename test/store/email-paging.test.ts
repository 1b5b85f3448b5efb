import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import fc from 'fast-check';
import { newId } from '../../src/lib/ids.ts';
import { type EmailFilters, listEmails } from '../../src/store/emails/lists.ts';
import type { Cursor } from '../../src/store/postgres/page.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase(2);

type Page = Awaited<ReturnType<typeof listEmails>>;

const TAGS = [
  { name: 'a', value: '1' },
  { name: 'b', value: '1' },
];

/** Members of a batch have its time. */
const BATCH_AT = 2;

const instant = (at: number) => new Date(Date.UTC(2026, 0, 1) + at).toISOString();

interface Row {
  readonly id: string;
  /** Milliseconds after some instant; several emails may share one. */
  readonly at: number;
  readonly tags: typeof TAGS;
  readonly status: 'queued' | 'sent';
  readonly batch_id: string | null;
}

async function store(orgId: string, emails: readonly Row[]): Promise<void> {
  await pool.query(
    `WITH email AS (
       SELECT *, (SELECT coalesce(bit_or(tag_bits(tag_key($1, tag.name, tag.value))), 0)
                  FROM jsonb_to_recordset(email.tags) AS tag(name text, value text)) AS tag_bits
       FROM jsonb_to_recordset($2) AS email(id text, at integer, tags jsonb, status text, batch_id text)
     ), stored AS (
       INSERT INTO emails (id, org_id, batch_id, "from", "to", subject, marketing, tags, tag_bits, headers, status, created_at,
                           last_event_at, workflow_id)
       SELECT id, $1, batch_id, 'a@b.example', '[]', 'Hello', false, tags, tag_bits, '{}', status,
              timestamptz '2026-01-01Z' + at * interval '1 ms', now(), id FROM email
     )
     INSERT INTO email_tags (tag, created_at, email_id, tag_bits)
     SELECT tag_key($1, tag.name, tag.value), timestamptz '2026-01-01Z' + at * interval '1 ms', id, tag_bits
     FROM email CROSS JOIN jsonb_to_recordset(email.tags) AS tag(name text, value text)`,
    [orgId, JSON.stringify(emails)],
  );
}

const row = fc
  .record({
    id: fc.string({ minLength: 1, maxLength: 8, unit: fc.constantFrom('a', 'b', 'z', '0', '1', '_', 'Z') }),
    at: fc.integer({ min: 0, max: 5 }),
    tags: fc.subarray(TAGS),
    status: fc.constantFrom('queued' as const, 'sent' as const),
    batch_id: fc.constantFrom(null, 'bt_1'),
  })
  .map((each) => (each.batch_id === null ? each : { ...each, at: BATCH_AT }));
const rows = (length: number) => fc.uniqueArray(row, { maxLength: length, selector: ({ id }) => id });
const filters: fc.Arbitrary<EmailFilters> = fc.record({
  tags: fc.subarray(TAGS),
  status: fc.constantFrom(null, 'queued' as const),
  batch_id: fc.constantFrom(null, 'bt_1'),
  created_after: fc.constantFrom(null, instant(1), instant(3)),
  created_before: fc.constantFrom(null, instant(2), instant(5)),
});

describe('paging while emails arrive anywhere in the list', () => {
  before(() =>
    pool.query(`INSERT INTO batches (id, org_id, total, created_at) VALUES ('bt_1', 'org_1', 1, $1)`, [
      instant(BATCH_AT),
    ]),
  );
  it('repeats no email and skips none that was there', async () => {
    await fc.assert(
      fc.asyncProperty(
        rows(20),
        fc.array(rows(4), { maxLength: 6 }),
        filters,
        fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 5 }),
        async (there, arriving, asked, limits) => {
          const orgId = newId('org');
          const ours = ({ id, ...rest }: Row, wave: number): Row => ({ id: `em_${id}_${wave}_${orgId}`, ...rest });
          const first = there.map((each) => ours(each, 0));
          await store(orgId, first);
          const wanted = (email: Row) =>
            asked.tags.every(({ name }) => email.tags.some((tag) => tag.name === name)) &&
            (asked.status === null || email.status === asked.status) &&
            (asked.batch_id === null || email.batch_id === asked.batch_id) &&
            (asked.created_after == null || instant(email.at) >= asked.created_after) &&
            (asked.created_before == null || instant(email.at) < asked.created_before);

          const found: string[] = [];
          const all = [...first];
          let from: Cursor | null = null;
          for (let page = 0; page === 0 || from; page++) {
            assert.ok(page <= 50, 'it comes to an end');
            const limit = limits[page % limits.length] ?? 1;
            const { rows: emails, next }: Page = await listEmails(pool, orgId, asked, from, limit);
            assert.ok(next ? emails.length === limit : emails.length <= limit);
            found.push(...emails.map(({ id }) => id));
            from = next;
            const wave = (arriving[page] ?? []).map((each) => ours(each, page + 1));
            await store(orgId, wave);
            all.push(...wave);
          }

          assert.equal(new Set(found).size, found.length, 'none twice');
          for (const email of first.filter(wanted)) assert.ok(found.includes(email.id), `${email.id} is hidden`);
          const order = new Map(
            all.toSorted((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1)).map(({ id }, index) => [id, index]),
          );
          const places = found.map((id) => order.get(id) ?? -1);
          assert.deepEqual(
            places,
            places.toSorted((a, b) => a - b),
            'latest first',
          );
          for (const id of found) assert.ok(wanted(all.find((email) => email.id === id) as Row));
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe('a filter by two frequent tags that hardly any email has both of', () => {
  const ORG = 'org_apart';
  const MANY = 11_000;
  before(async () => {
    await pool.query(
      `WITH email AS (
         SELECT 'em_' || lpad(n::text, 26, '0') AS id, timestamptz '2026-01-01Z' + n * interval '1 s' AS created_at,
                CASE WHEN n = 0 THEN $2::jsonb ELSE jsonb_build_array($2::jsonb -> (n % 2)) END AS tags
         FROM generate_series(0, 2 * $3::int) AS n
       ), tagged AS MATERIALIZED (
         SELECT id, created_at, tags, tag_key($1, tag.name, tag.value) AS tag
         FROM email CROSS JOIN jsonb_to_recordset(tags) AS tag(name text, value text)
       ), labelled AS (
         INSERT INTO email_tags (tag, created_at, email_id, tag_bits)
         SELECT tag, created_at, id, bit_or(tag_bits(tag)) OVER (PARTITION BY id) FROM tagged
       )
       INSERT INTO emails (id, org_id, "from", "to", subject, marketing, tags, tag_bits, headers, status, created_at,
                           last_event_at, workflow_id)
       SELECT id, $1, 'a@b.example', '[]', 'Hello', false, tags, bit_or(tag_bits(tag)), '{}', 'sent', created_at, now(), id
       FROM tagged GROUP BY id, created_at, tags`,
      [ORG, JSON.stringify(TAGS), MANY],
    );
  });

  for (const [status, expected] of [
    [null, 2],
    // A second index continues where the first stopped.
    ['sent', 1],
  ] as const) {
    it(`returns their common emails over several pages, with ${status ?? 'any status'}`, async () => {
      const asked = { tags: TAGS, status, batch_id: null };
      const found: string[] = [];
      let pages = 0;
      for (let from: Cursor | null = null; pages === 0 || from; pages++) {
        const page: Page = await listEmails(pool, ORG, asked, from, 10);
        found.push(...page.rows.map(({ id }) => id));
        from = page.next;
      }
      assert.deepEqual(found, [`em_${'0'.repeat(26)}`]);
      assert.equal(pages, expected);
    });
  }
});
