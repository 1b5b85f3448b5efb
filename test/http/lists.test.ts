import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { EMAIL_STATUSES, type EmailStatus } from '../../src/domain/email/email.ts';
import { force } from '../store/mail.ts';
import { assertRefused, inFuture, type Organization, type Service, startService, TIMESTAMP } from './service.ts';

interface Page {
  readonly emails: { id: string; created_at: string; status: string; tags: unknown }[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

let service: Service;
let ours: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
});
after(() => service.close());

async function list(query: string, org = ours): Promise<Page> {
  const answer = await org.call('GET', `/v1/emails${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body as Page;
}

/** Every page from the first to the last, by the cursors. */
async function pages(query: string, org = ours): Promise<Page[]> {
  const all = [await list(`?${query}`, org)];
  for (let cursor = all[0]?.next_cursor; cursor; cursor = all.at(-1)?.next_cursor) {
    all.push(await list(`?${query}&cursor=${cursor}`, org));
    assert.ok(all.length <= 200, 'it comes to an end');
  }
  return all;
}

const ids = (page: Page) => page.emails.map(({ id }) => id);

describe('an email in the list', () => {
  it('has these fields and no others, as in Get Email', async () => {
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

  it('tells why it failed or bounced', async () => {
    const org = await service.organization();
    const [failed, bounced] = [await org.sent(), await org.sent()];
    await force(service.pool, failed, 'failed');
    await force(service.pool, bounced, 'bounced');
    const { emails } = await list('', org);
    assert.deepEqual(
      emails.map((email) => [
        email.id,
        (email as { error?: unknown }).error,
        (email as { bounce_reason?: unknown }).bounce_reason,
      ]),
      [
        [bounced, null, 'mailbox_full'],
        [failed, 'earlier', null],
      ],
    );
  });

  it("is the organization's own", async () => {
    const [one, other] = [await service.organization(), await service.organization()];
    const id = await one.sent({ tags: [{ name: 'a', value: 'b' }] });
    assert.deepEqual(ids(await list('', one)), [id]);
    for (const query of ['', '?status=queued', '?tag=a:b', '?tag=a:b&status=queued']) {
      assert.deepEqual(await list(query, other), { emails: [], has_more: false, next_cursor: null });
    }
  });
});

describe('pages', () => {
  let org: Organization;
  let newestFirst: string[];
  before(async () => {
    org = await service.organization();
    const sent = [];
    for (let n = 0; n < 120; n++) sent.push(await org.sent());
    newestFirst = sent.reverse();
  });

  it('hold 50 without a limit, newest first', async () => {
    const page = await list('', org);
    assert.deepEqual(ids(page), newestFirst.slice(0, 50));
    assert.equal(page.has_more, true);
  });

  it('hold 1 to 100', async () => {
    assert.deepEqual(ids(await list('?limit=1', org)), newestFirst.slice(0, 1));
    assert.deepEqual(ids(await list('?limit=100', org)), newestFirst.slice(0, 100));
  });

  it('lead from the first to the last; only the last has no cursor', async () => {
    for (const limit of [7, 40, 50, 60, 100]) {
      const all = await pages(`limit=${limit}`, org);
      assert.deepEqual(all.flatMap(ids), newestFirst);
      assert.equal(all.length, Math.ceil(120 / limit));
      for (const page of all) {
        assert.equal(page.has_more, page !== all.at(-1));
        assert.equal(page.next_cursor === null, !page.has_more);
      }
    }
  });

  it('may change their length on the way', async () => {
    const { next_cursor } = await list('?limit=3', org);
    assert.deepEqual(ids(await list(`?limit=5&cursor=${next_cursor}`, org)), newestFirst.slice(3, 8));
  });

  it('that hold exactly what is left are the last', async () => {
    const { next_cursor } = await list('?limit=70', org);
    const page = await list(`?limit=50&cursor=${next_cursor}`, org);
    assert.equal(page.emails.length, 50);
    assert.deepEqual([page.has_more, page.next_cursor], [false, null]);
  });
});

describe('filters', () => {
  let org: Organization;
  const sent: { id: string; tags: string[]; status: EmailStatus; batch: string | null }[] = [];
  const TAGS = [[], ['kind:a'], ['kind:b'], ['kind:a', 'plan:x'], ['kind:b', 'plan:x'], ['kind:a', 'plan:y', 'beta:1']];
  const STATUSES: EmailStatus[] = ['queued', 'delivered', 'failed'];

  before(async () => {
    org = await service.organization();
    const other = await service.organization();
    for (let n = 0; n < 54; n++) {
      const tags = TAGS[n % TAGS.length] ?? [];
      const status = STATUSES[Math.floor(n / TAGS.length) % 3] ?? 'queued';
      const batch = n % 4 === 0 ? 'bt_1' : n % 4 === 1 ? 'bt_2' : null;
      const fields = { tags: tags.map((tag) => ({ name: tag.split(':')[0], value: tag.split(':')[1] })) };
      const id = await org.sent(fields);
      await other.sent(fields);
      if (status !== 'queued') await force(service.pool, id, status);
      await service.pool.query('UPDATE emails SET batch_id = $2 WHERE id = $1', [id, batch]);
      sent.unshift({ id, tags, status, batch });
    }
  });

  it('go together, each of them and all of them', async () => {
    const tagFilters = [
      [],
      ['kind:a'],
      ['plan:x'],
      ['kind:a', 'plan:x'],
      ['kind:a', 'plan:y', 'beta:1'],
      ['kind:a', 'kind:b'],
      ['kind:c'],
    ];
    for (const tags of tagFilters) {
      for (const status of [null, ...STATUSES, 'complained'] as (EmailStatus | null)[]) {
        for (const batch of [null, 'bt_1', 'bt_3']) {
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
          ];
          const all = await pages([...query, 'limit=4'].join('&'), org);
          assert.deepEqual(
            all.flatMap(ids),
            expected.map(({ id }) => id),
            query.join('&'),
          );
          for (const page of all) assert.equal(page.has_more, page !== all.at(-1));
        }
      }
    }
  });

  it('take every status', async () => {
    for (const status of EMAIL_STATUSES) {
      for (const email of (await list(`?status=${status}`, org)).emails) assert.equal(email.status, status);
    }
  });

  it('take a tag that is named twice, and tags in any order, also with a cursor from another order', async () => {
    const first = await list('?tag=kind:a&tag=plan:x&limit=2', org);
    for (const query of ['tag=plan:x&tag=kind:a', 'tag=kind:a&tag=plan:x&tag=kind:a', 'tag=kind%3Aa&tag=plan:x']) {
      assert.deepEqual(await list(`?${query}&limit=2`, org), first);
      assert.equal((await list(`?${query}&cursor=${first.next_cursor}`, org)).emails.length, 7);
    }
  });

  it('take 10 tags, of an email that has 10', async () => {
    const tags = Array.from({ length: 10 }, (_, n) => ({ name: `n${n}`, value: 'v'.repeat(256) }));
    const id = await org.sent({ tags });
    const query = tags.map(({ name, value }) => `tag=${name}:${value}`).join('&');
    assert.deepEqual(ids(await list(`?${query}`, org)), [id]);
    assertRefused(
      await org.call('GET', `/v1/emails?${query}&tag=n10:v`),
      422,
      'validation_error',
      'tag',
      'must hold at most 10 items',
    );
  });

  it('an email stays listed when it is canceled', async () => {
    const id = await org.sent({ scheduled_at: inFuture({ hours: 1 }) });
    assert.deepEqual(ids(await list('?status=scheduled', org)), [id]);
    await org.call('POST', `/v1/emails/${id}/cancel`);
    assert.deepEqual(ids(await list('?status=scheduled', org)), []);
    assert.deepEqual(ids(await list('?status=canceled', org)), [id]);
  });
});

describe('a query parameter', () => {
  for (const [query, param] of [
    ...['0', '101', '-1', '1.5', 'x', '', '1e1', '0x1', '%201', '+1', '9'.repeat(20), 'NaN', '%00', '1&limit=2'].map(
      (limit) => [`limit=${limit}`, 'limit'],
    ),
    ...[
      'x',
      '',
      ':',
      'a:',
      ':b',
      'a:b:c',
      'a b:c',
      'a:ü',
      `${'a'.repeat(257)}:b`,
      `a:${'b'.repeat(257)}`,
      'a:%00',
      '%0Aa:b',
    ].map((tag) => [`tag=${tag}`, 'tag']),
    ['tag=a:b&tag=c', 'tag.1'],
    ...['x', '', 'Sent', 'sent,failed', 'constructor', 'sent&status=failed'].map((status) => [
      `status=${status}`,
      'status',
    ]),
    ...['%00', 'a&batch_id=b'].map((batch) => [`batch_id=${batch}`, 'batch_id']),
    ...['x', '', 'null', '%00', 'a&cursor=b'].map((cursor) => [`cursor=${cursor}`, 'cursor']),
    ['x=1', 'x'],
    ['tag[]=a:b', 'tag[]'],
    ['tags=a:b', 'tags'],
    ['Limit=1', 'Limit'],
  ] as [string, string][]) {
    it(`${query.slice(0, 40)} is refused with 422`, async () => {
      assertRefused(await ours.call('GET', `/v1/emails?${query}`), 422, 'validation_error', param);
    });
  }

  it('of a batch or a tag that nothing has gives an empty page', async () => {
    for (const query of ['batch_id=', 'batch_id=x', 'batch_id=bt_x', 'tag=a:b', 'tag=a:b&tag=a:c']) {
      assert.deepEqual(await list(`?${query}`), { emails: [], has_more: false, next_cursor: null });
    }
  });
});

describe('a cursor', () => {
  const QUERIES = [
    '',
    'tag=a:b',
    'tag=a:b&tag=c:d',
    'status=queued',
    'tag=a:b&status=queued',
    'batch_id=bt_1',
    'batch_id=bt_2',
  ];

  it('is refused with other filters than those it was given out with, and by another organization', async () => {
    const [org, other] = [await service.organization(), await service.organization()];
    for (let n = 0; n < 3; n++) {
      for (const batch of ['bt_1', 'bt_2']) {
        const tags = [
          { name: 'a', value: 'b' },
          { name: 'c', value: 'd' },
        ];
        const id = await org.sent({ tags });
        await service.pool.query('UPDATE emails SET batch_id = $2 WHERE id = $1', [id, batch]);
      }
    }
    for (const query of QUERIES) {
      const { next_cursor } = await list(`?${query}&limit=1`.replace('?&', '?'), org);
      assert.ok(next_cursor);
      for (const otherQuery of QUERIES) {
        const path: string = `/v1/emails?${otherQuery}&cursor=${next_cursor}`.replace('?&', '?');
        const answer = await org.call('GET', path);
        if (otherQuery === query) assert.equal(answer.status, 200, path);
        else assertRefused(answer, 422, 'validation_error', 'cursor', 'must be the next_cursor');
        assertRefused(await other.call('GET', path), 422, 'validation_error', 'cursor');
      }
    }
  });
});

describe('GET /v1/emails/tags', () => {
  const tags = async (org: Organization) => (await org.call('GET', '/v1/emails/tags')).body;

  it('counts every stored email, by name and then value, whatever becomes of it', async () => {
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
    assert.deepEqual(await tags(org), {
      tags: [
        { name: 'B', value: '1', count: 2 },
        { name: 'a', value: '1', count: 1 },
        { name: 'a', value: '10', count: 1 },
        { name: 'a', value: '2', count: 2 },
        { name: 'a', value: 'A', count: 1 },
        { name: 'a-', value: '1', count: 1 },
        { name: 'a_', value: '1', count: 1 },
        { name: 'b', value: '1', count: 3 },
      ],
    });
    assert.deepEqual(await tags(await service.organization()), { tags: [] });
  });

  it('takes no parameters', async () => {
    assertRefused(await ours.call('GET', '/v1/emails/tags?limit=1'), 422, 'validation_error', 'limit');
  });
});

describe('lists are read', () => {
  it('with a key that may read', async () => {
    for (const path of ['/v1/emails', '/v1/emails/tags']) {
      assert.equal((await ours.call('GET', path, { key: await ours.addKey('read_only') })).status, 200);
      assertRefused(
        await ours.call('GET', path, { key: await ours.addKey('sending_access') }),
        403,
        'insufficient_scope',
      );
      assertRefused(await service.call('GET', path), 401, 'unauthorized');
    }
  });

  it('other methods are refused', async () => {
    const answer = await ours.call('DELETE', '/v1/emails');
    assertRefused(answer, 405, 'method_not_allowed');
    assert.equal(answer.headers['allow'], 'POST, GET');
    // PATCH is of /v1/emails/:id, whose emails are never named tags.
    assert.equal((await ours.call('DELETE', '/v1/emails/tags')).headers['allow'], 'GET');
  });
});
