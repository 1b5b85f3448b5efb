import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { EMAIL_STATUSES, type EmailStatus } from '../../src/domain/email/email.ts';
import { force } from '../store/mail.ts';
import { allPages, assertRefused, bodyOf, inFuture, type Organization, TIMESTAMP, useService } from './service.ts';

type Summary = { id: string; created_at: string; status: string; error: unknown; bounce_reason: unknown };
interface Page {
  readonly emails: Summary[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

/** Lists of emails and tags. Scopes and other organizations are tested in scopes and two-organizations.test.ts. */
const service = await useService();
const ours = await service.organization();

async function list(query: string, org = ours): Promise<Page> {
  return bodyOf<Page>(await org.call('GET', `/v1/emails${query}`), 200);
}

/** @returns its id */
async function sentBatch(org: Organization, emails: readonly unknown[]): Promise<string> {
  return bodyOf<{ id: string }>(await org.call('POST', '/v1/emails/batch', { json: { emails } }), 202).id;
}

const ids = (page: Page) => page.emails.map(({ id }) => id);
const allIds = async (query: string, limit: number, org: Organization) =>
  (await allPages<Summary>(org, `/v1/emails?${query}`, limit)).map(({ id }) => id);

describe('an email in the list', () => {
  it('has these fields and no others, with the values of Get Email', async () => {
    const org = await service.organization();
    const id = await org.sent({
      cc: 'c@example.net',
      tags: [{ name: 'kind', value: 'receipt' }],
      headers: { 'X-A': 'b' },
      scheduled_at: inFuture({ hours: 1 }),
    });
    const [summary] = (await list('', org)).emails;
    assert.ok(summary);
    assert.deepEqual(Object.keys(summary), [
      ...['id', 'batch_id', 'from', 'to', 'subject', 'marketing', 'tags', 'status', 'error', 'bounce_reason'],
      ...['created_at', 'scheduled_at', 'last_event_at'],
    ]);
    const email = await org.email(id);
    assert.deepEqual(summary, Object.fromEntries(Object.entries(email).filter(([field]) => field in summary)));
    assert.match(summary.created_at, TIMESTAMP);
  });

  it('has the error of a failure and the reason of a bounce', async () => {
    const org = await service.organization();
    const [failed, bounced] = [await org.sent(), await org.sent()];
    await force(service.pool, failed, 'failed');
    await force(service.pool, bounced, 'bounced');
    const rows = (await list('', org)).emails.map(({ id, error, bounce_reason: reason }) => [id, error, reason]);
    assert.deepEqual(rows, [
      [bounced, null, 'mailbox_full'],
      [failed, 'earlier', null],
    ]);
  });
});

describe('pages', () => {
  let org: Organization;
  const latestFirst: string[] = [];
  before(async () => {
    org = await service.organization();
    for (let n = 0; n < 120; n++) latestFirst.unshift(await org.sent());
  });

  for (const [query, expected] of [
    ['', 50],
    ['?limit=1', 1],
    ['?limit=100', 100],
  ] as const) {
    it(`contain the latest ${expected} emails, latest first, for the query "${query}"`, async () => {
      const page = await list(query, org);
      assert.deepEqual(ids(page), latestFirst.slice(0, expected));
      assert.equal(page.has_more, true);
    });
  }

  it('lead from the first to the last; only the last has no cursor', async () => {
    for (const limit of [7, 60]) assert.deepEqual(await allIds('', limit, org), latestFirst);
  });
});

describe('filters', () => {
  let org: Organization;
  const sent: { id: string; tags: string[]; status: EmailStatus; batch: string | null }[] = [];
  const TAGS = [[], ['kind:a'], ['kind:b'], ['kind:a', 'plan:x'], ['kind:b', 'plan:x'], ['kind:a', 'plan:y', 'beta:1']];
  const STATUSES: EmailStatus[] = ['queued', 'delivered', 'failed'];
  const batches: string[] = [];
  const tagsOf = (n: number) => TAGS[n % TAGS.length] ?? [];
  const fieldsOf = (n: number) => ({
    tags: tagsOf(n).map((tag) => ({ name: tag.split(':')[0], value: tag.split(':')[1] })),
  });

  before(async () => {
    org = await service.organization();
    const other = await service.organization();
    const add = async (n: number, id: string, batch: string | null): Promise<void> => {
      const status = STATUSES[Math.floor(n / TAGS.length) % 3] ?? 'queued';
      if (status !== 'queued') await force(service.pool, id, status);
      sent.unshift({ id, tags: tagsOf(n), status, batch });
    };
    for (let n = 0; n < 27; n++) await add(n, await org.sent(fieldsOf(n)), null);
    for (const [from, to] of [
      [27, 40],
      [40, 54],
    ] as const) {
      const emails = Array.from({ length: to - from }, (_, index) => org.mail(fieldsOf(from + index)));
      const batch = await sentBatch(org, emails);
      batches.push(batch);
      const members = ids(await list(`?batch_id=${batch}&limit=100`, org)).toReversed();
      for (const [index, id] of members.entries()) await add(from + index, id, batch);
    }
    for (let n = 0; n < 54; n++) await other.sent(fieldsOf(n));
  });

  const TAG_FILTERS = [[], ['kind:a'], ['kind:a', 'plan:x'], ['kind:a', 'plan:y', 'beta:1'], ['kind:a', 'kind:b']];
  it('combine tags, status and batch in any way', async () => {
    for (const tags of TAG_FILTERS) {
      for (const status of [null, 'queued', 'delivered', 'complained']) {
        for (const batch of [null, ...batches, 'bt_3']) {
          const expected = sent.filter(
            (email) =>
              tags.every((tag) => email.tags.includes(tag)) &&
              (status === null || email.status === status) &&
              (batch === null || email.batch === batch),
          );
          const query = [
            ...tags.map((tag) => `tag=${tag}`),
            ...(status ? [`status=${status}`] : []),
            ...(batch ? [`batch_id=${batch}`] : []),
          ].join('&');
          const expectedIds = expected.map(({ id }) => id);
          assert.deepEqual(await allIds(query, 4, org), expectedIds, query);
        }
      }
    }
  });

  it('accept every status', async () => {
    for (const status of EMAIL_STATUSES) {
      for (const email of (await list(`?status=${status}`, org)).emails) assert.equal(email.status, status);
    }
  });

  it('accept tags in any order and repeated, also with a cursor from another order', async () => {
    const first = await list('?tag=kind:a&tag=plan:x&limit=2', org);
    for (const query of ['tag=plan:x&tag=kind:a', 'tag=kind:a&tag=plan:x&tag=kind:a', 'tag=kind%3Aa&tag=plan:x']) {
      assert.deepEqual(await list(`?${query}&limit=2`, org), first);
      assert.equal((await list(`?${query}&cursor=${first.next_cursor}`, org)).emails.length, 7);
    }
  });

  it('accept at most 10 tags', async () => {
    const tags = Array.from({ length: 10 }, (_, n) => ({ name: `n${n}`, value: 'v'.repeat(256) }));
    const id = await org.sent({ tags });
    const query = tags.map(({ name, value }) => `tag=${name}:${value}`).join('&');
    assert.deepEqual(ids(await list(`?${query}`, org)), [id]);
    const answer = await org.call('GET', `/v1/emails?${query}&tag=n10:v`);
    assertRefused(answer, 422, 'validation_error', 'tag', 'must have at most 10 items');
  });

  it('find a canceled email by its new status', async () => {
    const id = await org.sent({ scheduled_at: inFuture({ hours: 1 }) });
    assert.deepEqual(ids(await list('?status=scheduled', org)), [id]);
    await org.call('POST', `/v1/emails/${id}/cancel`);
    assert.deepEqual(ids(await list('?status=scheduled', org)), []);
    assert.deepEqual(ids(await list('?status=canceled', org)), [id]);
  });
});

describe('a query parameter', () => {
  for (const [query, param] of [
    ...['0', '101', '1.5', '', '1&limit=2'].map((limit) => [`limit=${limit}`, 'limit']),
    ...['x', 'a:', 'a:b:c', `a:${'b'.repeat(257)}`, 'a:%00'].map((tag) => [`tag=${tag}`, 'tag']),
    ['tag=a:b&tag=c', 'tag.1'],
    ...['', 'Sent', 'sent,failed', 'constructor', 'sent&status='].map((status) => [`status=${status}`, 'status']),
    ...['', '%00', 'a&batch_id=b'].map((batch) => [`batch_id=${batch}`, 'batch_id']),
    ...['x', '', 'a&cursor=b'].map((cursor) => [`cursor=${cursor}`, 'cursor']),
    ['tag[]=a:b', 'tag[]'],
    ['Limit=1', 'Limit'],
  ] as [string, string][]) {
    it(`${query.slice(0, 40)} is refused with 422`, async () => {
      assertRefused(await ours.call('GET', `/v1/emails?${query}`), 422, 'validation_error', param);
    });
  }

  it('without a value is refused in plain words', async () => {
    const answer = await ours.call('GET', '/v1/emails?batch_id=');
    assertRefused(answer, 422, 'validation_error', 'batch_id', 'must not be empty');
  });

  for (const query of ['batch_id=bt_x', 'tag=a:b&tag=a:c']) {
    it(`${query} gives an empty page`, async () => {
      assert.deepEqual(await list(`?${query}`), { emails: [], has_more: false, next_cursor: null });
    });
  }
});

it('a cursor is refused with other filters than its own', async () => {
  const org = await service.organization();
  const tags = ['a:b', 'c:d'].map((tag) => ({ name: tag[0], value: tag[2] }));
  const emails = [1, 2, 3].map(() => org.mail({ tags }));
  const filters = ['', 'tag=a:b&', 'tag=a:b&tag=c:d&', 'status=queued&', 'tag=a:b&status=queued&'];
  const queries = [...filters, `batch_id=${await sentBatch(org, emails)}&`];
  for (const query of queries) {
    const { next_cursor } = await list(`?${query}limit=1`, org);
    assert.ok(next_cursor);
    for (const other of queries) {
      const answer = await org.call('GET', `/v1/emails?${other}cursor=${next_cursor}`);
      if (other === query) assert.equal(answer.status, 200, query);
      else assertRefused(answer, 422, 'validation_error', 'cursor', 'must be the next_cursor');
    }
  }
});

describe('GET /v1/emails/tags', () => {
  const tags = async (org: Organization) => (await org.call('GET', '/v1/emails/tags')).body;

  it('counts every stored email by name and value, in any status', async () => {
    const org = await service.organization();
    assert.deepEqual(await tags(org), { tags: [] });
    const all = ['b:1', 'a:2', 'a:10', 'B:1', 'a_:1', 'a-:1', 'a:1', 'a:A'].map((tag) => {
      const [name, value] = tag.split(':');
      return { name, value };
    });
    for (const tag of all) await org.sent({ tags: [tag] });
    await org.sent({ tags: [all[0], all[1], all[3]] });
    const canceled = await org.sent({ tags: all.slice(0, 1), scheduled_at: inFuture({ hours: 1 }) });
    await org.call('POST', `/v1/emails/${canceled}/cancel`);
    await org.sent();
    await org.send({ tags: all.slice(0, 1), subject: '' });
    const { tags: counts } = (await tags(org)) as { tags: { name: string; value: string; count: number }[] };
    assert.deepEqual(
      counts.map(({ name, value, count }) => `${name}:${value} ${count}`),
      ['B:1 2', 'a:1 1', 'a:10 1', 'a:2 2', 'a:A 1', 'a-:1 1', 'a_:1 1', 'b:1 3'],
    );
    assert.deepEqual(Object.keys(counts[0] ?? {}), ['name', 'value', 'count']);
  });
});
