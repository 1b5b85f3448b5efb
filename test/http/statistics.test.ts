import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { project } from '../../src/projection/emails.ts';
import { projectMessages } from '../../src/projection/messages.ts';
import { STATES } from '../../src/domain/statistics.ts';
import { connectNumber } from './resources.ts';
import { assertRefused, bodyOf, inFuture, type Organization, useService } from './service.ts';

const service = await useService();

interface Series {
  key: string;
  points: (Record<string, number> & { at: string })[];
  totals: Record<string, number>;
  rates: Record<string, number | null>;
  time_to_delivery_ms: { p50: number | null; p95: number | null };
}
interface Statistics {
  from: string;
  to: string;
  step: string;
  series: Series[];
}

async function read(organization: Organization, query = ''): Promise<Statistics> {
  return bodyOf<Statistics>(await organization.call('GET', `/v1/stats${query}`), 200);
}

/** Counts that are not 0. */
const nonZero = (counts: Record<string, number> = {}) =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));

async function anOrganization(domain: string): Promise<Organization> {
  const organization = await service.organization();
  await organization.addDomain(domain);
  return organization;
}

async function send(organization: Organization, domain: string, fields: object = {}): Promise<string> {
  const json = { from: `a@${domain}`, to: `b@${domain}`, subject: 'Hello', text: 'Hi', ...fields };
  return bodyOf<{ id: string }>(await organization.call('POST', '/v1/emails', { json }), 202).id;
}

describe('GET /v1/stats', () => {
  test('returns one series of zeros for an organization without email, and the period that it took', async () => {
    const ours = await anOrganization('none.example');
    const { from, to, step, series } = await read(ours);
    assert.equal(new Date(to).getTime() - new Date(from).getTime(), 86_400_000, '24 hours by default');
    assert.equal(step, 'hour');
    const none = { delivery: null, bounce: null, complaint: null, open: null, click: null };
    const totals = Object.fromEntries(STATES.map((state) => [state, 0]));
    const empty = { key: 'all', points: [], totals, rates: none, time_to_delivery_ms: { p50: null, p95: null } };
    assert.deepEqual(series, [empty]);
    assert.deepEqual((await read(ours, '?by=domain')).series, []);
  });

  for (const hours of [-3, 3]) {
    test(`ends now by the clock of the database, when that of the API is ${hours} hours ahead`, async (t) => {
      const ours = await anOrganization(`clock-${hours + 3}.example`);
      await send(ours, `clock-${hours + 3}.example`);
      const now = Date.now();
      t.mock.timers.enable({ apis: ['Date'], now: now + hours * 3_600_000 });
      const { to, series } = await read(ours);
      assert.ok(Math.abs(Date.parse(to) - now) < 1_800_000, to);
      assert.equal(series[0]?.totals['accepted'], 1);
    });
  }

  test('counts each email once for each state that it ever reached', async () => {
    const ours = await anOrganization('counted.example');
    const ids = await Promise.all(Array.from({ length: 5 }, () => send(ours, 'counted.example')));
    const [one, two, three, four] = ids.map((id) => ({ id }));
    assert.ok(one && two && three && four);
    await project(service.pool, 'sent', [one, two, three, four]);
    await project(service.pool, 'delivered', [one, two]);
    await project(service.pool, 'clicked', [one]);
    const bounce = { error: 'full', bounce_reason: 'mailbox_full' as const };
    await project(service.pool, 'bounced', [{ ...three, recipient: 'b@counted.example', ...bounce }]);
    const { series } = await read(ours);
    const [first] = series;
    assert.ok(first);
    const { key, points, totals, rates, time_to_delivery_ms: times } = first;
    assert.equal(key, 'all');
    const counts = { accepted: 5, sent: 4, delivered: 2, opened: 1, clicked: 1, bounced: 1 };
    assert.deepEqual(nonZero(totals), counts);
    assert.deepEqual(Object.keys(totals), [...STATES], 'in the order of the contract');
    assert.equal(points.length, 1);
    assert.equal(points[0]?.['accepted'], counts.accepted);
    assert.match(points[0].at, /:00:00\.000Z$/);
    assert.deepEqual(rates, { delivery: 0.5, bounce: 0.25, complaint: 0, open: 0.5, click: 0.5 });
    assert.ok(times.p50 !== null && times.p95 !== null && times.p50 <= times.p95 && times.p50 > 0);
    const byReason = (await read(ours, '?by=bounce_reason&step=day')).series;
    assert.deepEqual(
      byReason.map((each) => [each.key, nonZero(each.totals)]),
      [['mailbox_full', { accepted: 1, sent: 1, bounced: 1 }]],
    );
    assert.match(byReason[0]?.points[0]?.at ?? '', /T00:00:00\.000Z$/);
  });

  test('has a series for each domain, key, batch and value of a tag, the largest first', async () => {
    const ours = await anOrganization('by.example');
    await ours.addDomain('more.by.example');
    const tags = (value: string) => ({ tags: [{ name: 'kind', value }] });
    await send(ours, 'by.example', tags('receipt'));
    for (let i = 0; i < 2; i++)
      await send(ours, 'more.by.example', { ...tags('digest'), scheduled_at: inFuture({ days: 1 }) });
    const emails = Array.from({ length: 3 }, () => ({
      from: 'a@by.example',
      to: 'b@by.example',
      subject: 'x',
      text: 'x',
    }));
    const batch = bodyOf<{ id: string }>(await ours.call('POST', '/v1/emails/batch', { json: { emails } }), 202);
    const keys = async (by: string) =>
      (await read(ours, `?by=${by}`)).series.map(({ key, totals }) => [key, totals['accepted']]);
    assert.deepEqual(await keys('domain'), [
      ['by.example', 4],
      ['more.by.example', 2],
    ]);
    assert.deepEqual(await keys('tag:kind'), [
      ['digest', 2],
      ['receipt', 1],
    ]);
    assert.deepEqual(await keys('batch'), [[batch.id, 3]]);
    const [[key, accepted] = []] = await keys('key');
    assert.match(String(key), /^key_/);
    assert.equal(accepted, 6);
    assert.deepEqual(await keys('tag:other'), []);
  });

  test('counts chat-app messages: read as opened, a failure as failed', async () => {
    const ours = await service.organization();
    const { number } = await connectNumber(ours);
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      const json = {
        from: number,
        to: '+4915123456789',
        text: 'Hello',
        tags: [{ name: 'kind', value: 'a' }],
      };
      ids.push(bodyOf<{ id: string }>(await ours.call('POST', '/v1/chatapp', { json }), 202).id);
    }
    const [one, two] = ids.map((id) => ({ id }));
    assert.ok(one && two);
    await projectMessages(service.pool, 'sent', [one, two]);
    for (let i = 0; i < 2; i++) await projectMessages(service.pool, 'read', [one]);
    await projectMessages(service.pool, 'failureReported', [{ ...two, error: 'no' }]);
    const expected = { accepted: 3, sent: 2, delivered: 1, opened: 1, failed: 1 };
    for (const query of ['?channel=chatapp', '?channel=chatapp&by=tag:kind', '?channel=chatapp&by=key']) {
      const { series } = await read(ours, query);
      assert.deepEqual(
        series.map(({ totals }) => nonZero(totals)),
        [expected],
        query,
      );
    }
    assert.deepEqual(nonZero((await read(ours, '?channel=sms')).series[0]?.totals), {});
    assert.deepEqual(nonZero((await read(ours)).series[0]?.totals), {}, 'email by default');
  });

  test("shows nothing of another organization's messages", async () => {
    const [ours, theirs] = [await anOrganization('ours.example'), await anOrganization('theirs.example')];
    await send(theirs, 'theirs.example', { tags: [{ name: 'kind', value: 'a' }] });
    for (const by of ['domain', 'key', 'batch', 'bounce_reason', 'tag:kind']) {
      assert.deepEqual((await read(ours, `?by=${by}`)).series, [], by);
    }
    assert.deepEqual(nonZero((await read(ours)).series[0]?.totals), {});
  });

  const day = (date: string) => `2026-${date}T00:00:00Z`;
  for (const [query, param, message] of [
    [`from=${day('03-02')}&to=${day('03-01')}`, 'from', 'must not be after to'],
    [`from=${day('03-01')}&to=2026-04-01T00:00:00.001Z`, 'from', 'is too long before to; at most 31 days'],
    [`from=2024-01-01T00:00:00Z&to=${day('03-01')}&step=day`, 'from', 'is too long before to; at most 400 days'],
    ['from=2026-03-01', 'from', 'must be an ISO 8601 instant'],
    ['to=', 'to', 'must be an ISO 8601 instant'],
    ['step=week', 'step', ''],
    ['by=subject', 'by', 'must be domain, batch, key, bounce_reason, or tag:'],
    ['by=tag:', 'by', 'must be domain'],
    ['by=', 'by', 'must be domain'],
    ['channel=fax', 'channel', ''],
    ['limit=1', 'limit', ''],
  ] as const) {
    test(`refuses ${query}`, async () => {
      const ours = await service.organization();
      assertRefused(await ours.call('GET', `/v1/stats?${query}`), 422, 'validation_error', param, message);
    });
  }

  test('refuses to add up the counts of too many keys, and names what to narrow', async () => {
    const ours = await service.organization();
    const states = STATES.filter((state) => state !== 'accepted');
    await service.pool.query(
      `INSERT INTO stat_totals (org_id, channel, dimension, step, at, key, accepted, ${states.join()})
       SELECT $1, 'email', 'tag:k', step, at::timestamptz, 'v' || key, key, ${states.map(() => '0').join()}
       FROM generate_series(1, 8000) AS key CROSS JOIN (
         SELECT 'hour', '2026-03-01T00:00:00Z'::timestamptz + hour * interval '1 hour' FROM generate_series(0, 25) AS hour
         UNION ALL SELECT 'day', '2026-03-01T00:00:00Z') AS period(step, at)`,
      [ours.id],
    );
    const query = (from: string, rest = '') => `?by=tag:k&from=${day('03-01')}&to=2026-03-${from}:00:00Z${rest}`;
    const refused = await ours.call('GET', `/v1/stats${query('02T02')}`);
    assertRefused(
      refused,
      422,
      'validation_error',
      'by',
      'has more than 200,000 counts in this period; use step=day, shorten',
    );
    for (const narrower of [query('02T01'), query('02T02', '&step=day')]) {
      const { series } = await read(ours, narrower);
      assert.deepEqual([series.length, series[0]?.key, series[49]?.key], [50, 'v8000', 'v7951'], narrower);
    }
    assert.equal((await read(ours, query('02T02').replace('tag:k', 'domain'))).series.length, 0, 'another by');
  });

  test('accepts periods at their limits', async () => {
    const ours = await service.organization();
    await read(ours, `?from=${day('03-01')}&to=2026-04-01T00:00:00Z`);
    await read(ours, `?from=2026-01-01T00:00:00Z&to=2027-02-05T00:00:00Z&step=day`);
    await read(ours, `?from=${day('03-01')}&to=${day('03-01')}`);
    await read(ours, '?to=0001-01-01T12:00:00Z');
    await read(ours, '?to=0001-01-01T00:00:00Z&step=day');
  });
});
