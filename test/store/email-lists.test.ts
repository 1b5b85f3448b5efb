import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type EmailFilters, listEmails } from '../../src/store/emails/lists.ts';
import type { Cursor } from '../../src/store/postgres/page.ts';
import { useDatabase } from '../support/database.ts';
import { LARGE, numberedId, storeManyEmails, TIMES } from '../../dev/fixtures/many-emails.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { indexEmails } from '../../src/upkeep/search-index.ts';
import { explainEach, type PlanNode, readBy, rowsOf } from '../support/plans.ts';

const ROWS = 100_000;
/** The longest page, and the row that shows that there is a next page. */
const PAGE = 101;

const { pool } = await useDatabase(2);
await storeManyEmails(pool, ROWS);

const tags = (...texts: string[]): EmailFilters['tags'] =>
  texts.map((text) => ({ name: text.slice(0, text.indexOf(':')), value: text.slice(text.indexOf(':') + 1) }));

/** Frequent and rare tags and statuses, which are tried in every combination. */
const STATUSES = [null, 'delivered', 'complained'] as const;
const TAG_SETS: Readonly<Record<string, EmailFilters['tags']>> = {
  'no tag': [],
  'a frequent tag': tags('kind:receipt'),
  'a tag that some have': tags('plan:p3'),
  'a rare tag': tags('customer:c9000'),
  'a tag that none has': tags('customer:none'),
  'two tags': tags('kind:receipt', 'customer:c7'),
  'two tags that some have': tags('plan:p3', 'campaign:x5'),
  'two tags that exclude each other': tags('kind:digest', 'campaign:x5'),
  'ten tags': tags('kind:receipt', 'plan:p3', 'campaign:x5', ...'1234567'.split('').map((n) => `t${n}:v`)),
};
const FILTERS = Object.entries(TAG_SETS).flatMap(([name, tagSet]) =>
  STATUSES.flatMap((status) =>
    [null, 'bt_60000'].map((batch_id) => ({
      name: [name, status ?? 'any status', batch_id ? 'in a batch' : ''].filter(Boolean).join(', '),
      filters: { tags: tagSet, status, batch_id } satisfies EmailFilters,
    })),
  ),
);

/** The middle of the batch, where every list has rows before and after. */
const DEEP_AT = TIMES.first + 60_000 * TIMES.apart;
const DEEP: Cursor = { created_at: new Date(DEEP_AT).toISOString(), id: numberedId(DEEP_AT, 62_500) };

describe('no list reads more rows than its page needs', () => {
  const works = FILTERS.flatMap(({ name, filters }) =>
    [null, DEEP].map((from) => [name, (db: Db) => listEmails(db, LARGE, filters, from, PAGE - 1)] as const),
  );
  // Without statistics, plans for values may be worse; Postgres gathers them within a minute.
  for (const [when, modes] of [
    ['before VACUUM', ['generic']],
    ['after VACUUM', ['generic', 'custom']],
  ] as const) {
    it(when, async () => {
      if (when === 'after VACUUM') await pool.query('VACUUM ANALYZE');
      await explainEach(pool, works, assertCheap, modes);
    });
  }

  function assertCheap(steps: readonly PlanNode[], message: string): void {
    for (const node of steps) {
      if (node['Relation Name']) assert.notEqual(node['Node Type'], 'Seq Scan', message);
      assert.doesNotMatch(node['Node Type'], /Bitmap|Gather|Hash Join|Merge Join/, message);
      if (/Sort/.test(node['Node Type'])) {
        const sorted = (node.Plans ?? []).reduce((sum, child) => sum + rowsOf(child), 0);
        assert.ok(sorted <= PAGE, message);
      }
    }
  }
});

describe('a list', () => {
  it('returns what reading every row would return, page by page', async () => {
    const { rows: all } = await pool.query<
      Cursor & { tags: EmailFilters['tags']; status: string; batch_id: string | null }
    >(`SELECT id, created_at, tags, status, batch_id FROM emails WHERE org_id = $1 ORDER BY created_at DESC, id DESC`, [
      LARGE,
    ]);
    for (const { name, filters } of FILTERS) {
      const expected = all.filter(
        (email) =>
          filters.tags.every(({ name, value }) => email.tags.some((tag) => tag.name === name && tag.value === value)) &&
          (filters.status === null || email.status === filters.status) &&
          (filters.batch_id === null || email.batch_id === filters.batch_id),
      );
      const found: string[] = [];
      let next: Cursor | null = null;
      do {
        const page = await listEmails(pool, LARGE, filters, next, PAGE - 1);
        found.push(...page.rows.map(({ id }) => id));
        next = page.next;
      } while (next && found.length < 350);
      const ids = expected.map(({ id }) => id);
      assert.deepEqual(found, next ? ids.slice(0, found.length) : ids, name);
    }
  });
});

describe('no search reads more than a bounded number of rows', () => {
  /** Rows that one step of a statement reads at most: members of 50 blocks, looked up by their number. */
  const READ = 50 * 504;
  const SEARCHES: Readonly<Record<string, Partial<EmailFilters>>> = {
    'a rare recipient': { to: 'user9999@corp9999.example' },
    'a frequent recipient': { to: 'user0@mail.example' },
    'a frequent domain': { to: '@mail.example' },
    'a recipient that no email has': { to: 'none@mail.example' },
    'the sender of all': { from: 'hello@acme.example' },
    'a frequent word': { subject: ['receipt'] },
    'a rare word': { subject: ['4711'] },
    'words that no subject has together': { subject: ['digest', 'receipt', 'weekly'] },
    'a frequent word, a rare tag and a rare status': {
      subject: ['alert'],
      tags: tags('customer:c9000'),
      status: 'complained',
    },
    'several statuses': { status: ['delivered', 'bounced', 'complained'] },
    'several statuses and a frequent word': { status: ['bounced', 'complained'], subject: ['receipt'] },
    'a bounce reason': { bounce_reason: 'mailbox_full' },
    'a time': {
      created_after: new Date(DEEP_AT).toISOString(),
      created_before: new Date(DEEP_AT + 9_000).toISOString(),
    },
  };
  const works = Object.entries(SEARCHES).flatMap(([name, some]) =>
    [null, DEEP].map((from) => {
      const filters = { tags: [], status: null, batch_id: null, ...some };
      return [name, (db: Db) => listEmails(db, LARGE, filters, from, PAGE - 1)] as const;
    }),
  );
  const assertBounded = (steps: readonly PlanNode[], message: string): void => {
    for (const node of steps) {
      if (node['Relation Name']) assert.notEqual(node['Node Type'], 'Seq Scan', message);
      assert.doesNotMatch(node['Node Type'], /Gather|Hash Join|Merge Join/, message);
      assert.ok(readBy(node) <= READ, message);
    }
  };

  it('before emails are indexed', async () => {
    await explainEach(pool, works, assertBounded, ['generic']);
  });

  it('by the index', async () => {
    await pool.query(`INSERT INTO organizations (id, name) VALUES ($1, 'Large')`, [LARGE]);
    await indexEmails(pool, { blockSize: 500, settledMs: 0 });
    await pool.query('VACUUM ANALYZE');
    await explainEach(pool, works, assertBounded, ['generic']);
    // One page is enough: no other part of the list has to be looked at.
    for (const some of [
      SEARCHES['a rare recipient'],
      SEARCHES['a rare word'],
      SEARCHES['a recipient that no email has'],
    ]) {
      const filters = { tags: [], status: null, batch_id: null, ...some };
      const { rows: emails, next } = await listEmails(pool, LARGE, filters, null, PAGE - 1);
      const { rows } = await pool.query<{ count: number }>(
        `SELECT count(*)::int FROM emails
         WHERE org_id = $1 AND ("to" ->> 0 = $2 OR subject LIKE '% ' || $3 || ' %')`,
        [LARGE, some?.to ?? '', some?.subject?.[0] ?? ''],
      );
      assert.deepEqual([emails.length, next], [rows[0]?.count, null]);
    }
  });
});
