import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { idTime } from '../../src/lib/ids.ts';
import type { Tag } from '../../src/domain/email/email.ts';
import { isMatch, type Searchable } from '../../src/domain/email/search.ts';
import { type EmailFilters, listEmails } from '../../src/store/emails/lists.ts';
import type { Cursor } from '../../src/store/postgres/page.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { indexEmails } from '../../src/upkeep/search-index.ts';
import { useDatabase } from '../support/database.ts';
import { accept, DOMAIN, newEmail, organization } from './mail.ts';

const { pool } = await useDatabase(4);

interface Stored extends Searchable {
  readonly id: string;
  readonly created_at: string;
  readonly status: string;
  readonly tags: readonly Tag[];
  readonly bounce_reason: string | null;
  readonly batch_id: string | null;
}

const ALL: EmailFilters = { tags: [], status: null, batch_id: null };
const KIND: Tag = { name: 'kind', value: 'a' };
const FIRST = Date.UTC(2026, 0, 1);
const at = (n: number) => new Date(FIRST + n * 1_000).toISOString();
/** The numbers of the members of a batch, which have its time. */
const BATCH = { first: 200, last: 399 };
const isMember = (n: number) => n >= BATCH.first && n <= BATCH.last;

/** Frequent and rare values in every combination, and some that no email has. */
const SEARCHES: readonly (readonly [string, Partial<EmailFilters>])[] = [
  ['a rare recipient', { to: 'rare@one.example' }],
  ['a frequent recipient', { to: 'often@many.example' }],
  ['a recipient in cc', { to: 'copy@cc.example' }],
  ['a rare domain', { to: '@one.example' }],
  ['a domain in Unicode', { to: '@xn--bcher-kva.example' }],
  ['a frequent domain', { to: '@many.example' }],
  ['a recipient that no email has', { to: 'none@many.example' }],
  ['a sender', { from: 'b@acme.example' }],
  ['the domain of all senders', { from: '@acme.example' }],
  ['a rare word', { subject: ['seldom'] }],
  ['a frequent word', { subject: ['receipt'] }],
  ['two frequent words', { subject: ['june', 'receipt'] }],
  ['two frequent words that no subject has together', { subject: ['alert', 'receipt'] }],
  ['a word that is a part of others', { subject: ['is'] }],
  ['a frequent word and a rare recipient', { subject: ['receipt'], to: 'rare@one.example' }],
  ['a frequent word and a frequent domain', { subject: ['receipt'], to: '@many.example' }],
  ['a time', { created_after: at(300), created_before: at(600) }],
  ['a word within a time', { subject: ['receipt'], created_after: at(300), created_before: at(600) }],
  ['a rare recipient and a tag', { to: 'rare@one.example', tags: [KIND] }],
  ['a frequent word and a tag', { subject: ['receipt'], tags: [KIND] }],
  ['a frequent word and a status', { subject: ['receipt'], status: 'sent' }],
  ['several statuses', { status: ['sent', 'bounced'] }],
  ['several statuses and a word', { status: ['sent', 'bounced'], subject: ['june'] }],
  ['several statuses and a tag', { status: ['sent', 'delivered'], tags: [KIND] }],
  ['a bounce reason', { bounce_reason: 'mailbox_full' }],
  ['a bounce reason among other statuses', { bounce_reason: 'mailbox_full', status: ['sent', 'delivered'] }],
  ['a bounce reason and a domain', { bounce_reason: 'mailbox_full', to: '@many.example' }],
  ['a recipient in a batch', { batch_id: 'bt_1', to: '@many.example' }],
];

const fits = (email: Stored, filters: EmailFilters): boolean =>
  isMatch(email, filters) &&
  filters.tags.every(({ name, value }) => email.tags.some((tag) => tag.name === name && tag.value === value)) &&
  (filters.status === null || [filters.status].flat().some((status) => status === email.status)) &&
  (filters.batch_id === null || filters.batch_id === email.batch_id) &&
  (filters.bounce_reason == null || filters.bounce_reason === email.bounce_reason) &&
  (filters.created_after == null || email.created_at >= filters.created_after) &&
  (filters.created_before == null || email.created_at < filters.created_before);

function emailOf(n: number) {
  const subject = ['Receipt for June', 'receipt', 'Alert: this is new', 'June alert', 'Überblick is here'][n % 5] ?? '';
  return newEmail({
    id: `em_${idTime(FIRST + n * 1_000)}${String(n).padStart(16, '0')}`,
    batch_id: isMember(n) ? 'bt_1' : null,
    from: n % 3 === 0 ? 'Bea <B@Acme.example>' : 'Müller <a@acme.example>',
    to: [
      ...(n % 97 === 0 ? ['Rare One <rare@one.example>'] : []),
      ...(n % 2 === 0 ? ['Often@Many.example'] : [`person-${n}@example.net`]),
    ],
    cc: n % 11 === 0 ? ['copy@cc.example'] : null,
    bcc: n % 13 === 0 ? ['b@bücher.example'] : null,
    subject: n % 101 === 0 ? `${subject} seldom` : subject,
    tags: n % 4 === 0 ? [KIND] : [],
  });
}

/** Stores emails with these numbers, a second apart. */
async function store(orgId: string, numbers: readonly number[], domain = DOMAIN): Promise<Stored[]> {
  const emails = numbers.map((n) => ({ ...emailOf(n), from_domain: domain }));
  for (let from = 0; from < emails.length; from += 500) await accept(pool, orgId, emails.slice(from, from + 500));
  await pool.query(
    `UPDATE emails SET created_at = at, status = new_status, bounce_reason = CASE new_status WHEN 'bounced' THEN 'mailbox_full' END
     FROM unnest($1::text[], $2::timestamptz[], $3::text[]) AS value(email_id, at, new_status) WHERE id = email_id`,
    [
      emails.map(({ id }) => id),
      numbers.map((n) => at(isMember(n) ? BATCH.first : n)),
      numbers.map((n) => (n % 7 === 0 ? 'sent' : n % 19 === 0 ? 'bounced' : 'delivered')),
    ],
  );
  await pool.query(`UPDATE email_tags SET created_at = emails.created_at FROM emails WHERE email_id = emails.id`);
  return readAll(orgId);
}

async function readAll(orgId: string): Promise<Stored[]> {
  const { rows } = await pool.query<Stored>(
    `SELECT * FROM emails WHERE org_id = $1 ORDER BY created_at DESC, id DESC`,
    [orgId],
  );
  return rows;
}

async function pagesOf(orgId: string, filters: EmailFilters, limit: number): Promise<string[]> {
  const found: string[] = [];
  let next: Cursor | null = null;
  for (let page = 0; page === 0 || next; page++) {
    assert.ok(page < 200, 'it comes to an end');
    const { rows: emails, next: following }: Awaited<ReturnType<typeof listEmails>> = await listEmails(
      pool,
      orgId,
      filters,
      next,
      limit,
    );
    found.push(...emails.map(({ id }) => id));
    next = following;
  }
  return found;
}

async function assertFinds(orgId: string, all: readonly Stored[]): Promise<void> {
  for (const [name, some] of SEARCHES) {
    const filters = { ...ALL, ...some };
    const expected = all.filter((email) => fits(email, filters)).map(({ id }) => id);
    for (const limit of [7, 100]) assert.deepEqual(await pagesOf(orgId, filters, limit), expected, name);
  }
}

const count = async (orgId: string) => {
  const { rows } = await pool.query<{ postings: number; is_complete: boolean }>(
    `SELECT (SELECT count(*)::int FROM email_terms) AS postings, oldest_at IS NULL AS is_complete
     FROM search_ranges WHERE org_id = $1`,
    [orgId],
  );
  return rows[0];
};

describe('a search of emails', () => {
  let orgId: string;
  const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n);
  before(async () => {
    orgId = await organization(pool);
    await pool.query(`INSERT INTO batches (id, org_id, total, created_at) VALUES ('bt_1', $1, $2, $3)`, [
      ...[orgId, BATCH.last - BATCH.first + 1, at(BATCH.first)],
    ]);
  });

  it('finds emails that are not indexed, page by page', async () => {
    await assertFinds(orgId, await store(orgId, numbers(0, 900)));
  });

  it('finds emails of which the index holds the older ones only', async () => {
    assert.equal(await indexEmails(pool, { blockSize: 64, settledMs: 0 }), 900);
    const indexed = await count(orgId);
    assert.ok(indexed?.is_complete && indexed.postings > 0);
    await assertFinds(orgId, await readAll(orgId));
    // The index begins at the newest emails that there were: later ones get whole blocks.
    await pool.query(`UPDATE search_ranges SET newest_at = $2 WHERE org_id = $1`, [orgId, at(900)]);
    const all = await store(orgId, numbers(900, 1_000));
    await assertFinds(orgId, all);
    assert.equal(await indexEmails(pool, { blockSize: 64, settledMs: 0 }), 64);
    await assertFinds(orgId, all);
  });

  it('finds nothing of another organization', async () => {
    const other = await organization(pool, 'third.example');
    for (const [name, some] of SEARCHES) {
      assert.deepEqual(await pagesOf(other, { ...ALL, ...some }, 100), [], name);
    }
  });

  it('finds emails while old ones are still to be indexed', async () => {
    await pool.query('DELETE FROM email_terms');
    await pool.query('DELETE FROM search_ranges');
    const aborting = new AbortController();
    let blocks = 0;
    const pause = async () => {
      if (blocks++ === 4) aborting.abort();
    };
    await indexEmails(pool, { blockSize: 64, settledMs: 0, pause }, aborting.signal);
    assert.equal((await count(orgId))?.is_complete, false);
    await assertFinds(orgId, await readAll(orgId));
  });

  for (const [what, stored] of [
    ['new emails', 900],
    ['old emails', 0],
  ] as const) {
    it(`finds each email once while ${what} are indexed between two statements of a page`, async () => {
      const domain = `after-${stored}.example`;
      const racing = await organization(pool, domain);
      const all = await store(racing, numbers(2_000 + stored, 2_050 + stored), domain);
      await pool.query(
        `INSERT INTO search_ranges (org_id, newest_at, newest_id, oldest_at, oldest_id)
         VALUES ($1, $2, '', $3, '') ON CONFLICT (org_id) DO UPDATE SET newest_at = $2, newest_id = '', oldest_at = $3, oldest_id = ''`,
        stored > 0 ? [racing, at(0), null] : [racing, at(9_000), at(9_000)],
      );
      let statements = 0;
      const execute = pool.query.bind(pool) as (...statement: unknown[]) => Promise<unknown>;
      const query = async (...statement: unknown[]) => {
        const result = await execute(...statement);
        if (statements++ === 0) assert.ok((await indexEmails(pool, { blockSize: 10, settledMs: 0 })) >= 50);
        return result;
      };
      const page = await listEmails({ query } as unknown as Db, racing, { ...ALL, from: '@acme.example' }, null, 100);
      assert.deepEqual(
        page.rows.map(({ id }) => id),
        all.map(({ id }) => id),
      );
    });
  }
});
