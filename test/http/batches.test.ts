import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { EmailChange } from '../../src/domain/email/states.ts';
import { project } from '../../src/projection/emails.ts';
import { type Answer, assertRefused, inFuture, type Organization, type Service, startService } from './service.ts';

/** GET and cancel of batches, and their list: decisions 4 and 5. */
let service: Service;
let ours: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
});
after(() => service.close());

type Json = Record<string, unknown>;
const NOBODY = `bt_${'0'.repeat(26)}`;
const later = { scheduled_at: inFuture({ hours: 1 }) };

async function send(emails: Json[], by = ours): Promise<string> {
  const answer = await by.call('POST', '/v1/emails/batch', { json: { emails } });
  assert.equal(answer.status, 202, answer.text);
  return (answer.body as { id: string }).id;
}

async function get(id: string): Promise<Json> {
  const answer = await ours.call('GET', `/v1/emails/batch/${id}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body as Json;
}

function cancel(id: string, key = ours.key): Promise<Answer> {
  return service.call('POST', `/v1/emails/batch/${id}/cancel`, { key });
}

async function members(id: string): Promise<string[]> {
  const { rows } = await service.pool.query<{ id: string }>('SELECT id FROM emails WHERE batch_id = $1 ORDER BY id', [
    id,
  ]);
  return rows.map((row) => row.id);
}

/** What a worker or a provider would say of some emails. */
async function change(what: Exclude<EmailChange, 'rescheduled'>, ids: readonly (string | undefined)[]): Promise<void> {
  const emails = ids.map((id) => ({ id: String(id), error: 'why' }));
  assert.equal((await project(service.pool, what, emails)).length, ids.length);
}

/** What the emails themselves say, counted. */
async function counted(id: string): Promise<Json> {
  const { rows } = await service.pool.query<{ status: string; count: number }>(
    'SELECT status, count(*)::int FROM emails WHERE batch_id = $1 GROUP BY status',
    [id],
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

describe('GET /v1/emails/batch/:id', () => {
  it('goes from queued by processing to completed, with the number of emails in each status', async () => {
    const id = await send([...Array.from({ length: 4 }, () => ours.mail()), ours.mail(later), ours.mail(later)]);
    const [a, b, c, d, e, f] = await members(id);
    const seen: [string, Json][] = [];
    const look = async () => {
      const batch = await get(id);
      assert.deepEqual(Object.keys(batch), ['id', 'total', 'status', 'created_at', 'completed_at', 'counts']);
      assert.deepEqual([batch['id'], batch['total']], [id, 6]);
      assert.deepEqual(batch['counts'], await counted(id));
      assert.equal(batch['completed_at'] === null, batch['status'] !== 'completed');
      seen.push([batch['status'] as string, batch['counts']]);
    };
    await look();
    await change('claimed', [e]);
    await look();
    await change('sent', [a]);
    await look();
    await change('sent', [b, c]);
    await change('rejected', [d]);
    await change('delivered', [a, b]);
    await look();
    await change('failed', [e]);
    assert.equal((await ours.call('POST', `/v1/emails/${f}/cancel`)).status, 200);
    await look();
    await change('complained', [a]);
    await look();
    assert.deepEqual(seen, [
      ['queued', { queued: 4, scheduled: 2 }],
      ['queued', { queued: 5, scheduled: 1 }],
      ['processing', { queued: 4, scheduled: 1, sent: 1 }],
      ['processing', { queued: 1, scheduled: 1, sent: 1, delivered: 2, rejected: 1 }],
      ['completed', { sent: 1, delivered: 2, canceled: 1, rejected: 1, failed: 1 }],
      ['completed', { sent: 1, delivered: 1, complained: 1, canceled: 1, rejected: 1, failed: 1 }],
    ]);
  });

  it('completed_at is when the last email stopped waiting, whatever is heard of them later', async () => {
    const id = await send([ours.mail(), ours.mail(later)]);
    const [a, b] = await members(id);
    await change('sent', [a]);
    await ours.call('POST', `/v1/emails/${b}/cancel`);
    const { completed_at: at } = await get(id);
    assert.equal((await ours.email(String(b)))['last_event_at'], at);
    await service.pool.query('SELECT pg_sleep(0.01)');
    await change('delivered', [a]);
    assert.equal((await get(id))['completed_at'], at);
  });

  it('a report that comes before our own record of the hand-over counts once', async () => {
    const id = await send([ours.mail(), ours.mail()]);
    const [a, b] = await members(id);
    const report = (email: unknown, key: string) => ({ id: String(email), dedupe_key: key });
    await project(service.pool, 'delivered', [report(a, '1'), report(a, '2'), report(b, '3')]);
    await project(service.pool, 'delivered', [report(a, '1')]);
    await change('sent', [a, b]);
    assert.deepEqual((await get(id))['counts'], { delivered: 2 });
  });

  it('is exact while many change its emails at once', async () => {
    const id = await send(Array.from({ length: 200 }, () => ours.mail()));
    const ids = await members(id);
    const groups = Array.from({ length: 20 }, (_, i) => ids.slice(i * 10, i * 10 + 10));
    await Promise.all(groups.map((group) => change('sent', group)));
    await Promise.all(ids.map((each, i) => change(i % 2 === 0 ? 'delivered' : 'opened', [each])));
    assert.deepEqual((await get(id))['counts'], await counted(id));
  });

  it('404: none has this id, or another organization has it', async () => {
    const others = await service.organization();
    const id = await send([others.mail()], others);
    const single = await ours.sent();
    for (const each of [NOBODY, 'x', id, single]) {
      assertRefused(await ours.call('GET', `/v1/emails/batch/${each}`), 404, 'not_found');
      assertRefused(await cancel(each), 404, 'not_found');
    }
  });

  it('403: a key that only sends', async () => {
    const key = await ours.addKey('sending_access');
    assertRefused(await service.call('GET', `/v1/emails/batch/${NOBODY}`, { key }), 403, 'insufficient_scope');
    assertRefused(await service.call('GET', '/v1/emails/batch', { key }), 403, 'insufficient_scope');
  });
});

describe('POST /v1/emails/batch/:id/cancel', () => {
  it('cancels every email that is still scheduled, and tells the relay of each', async () => {
    const id = await send([ours.mail(), ...Array.from({ length: 600 }, () => ours.mail(later))]);
    const [, claimed, ...rest] = await members(id);
    await change('claimed', [claimed]);
    const woken = service.wakes();
    const answer = await cancel(id);
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.body, { id, status: 'processing', canceled: 599 });
    assert.equal(service.wakes(), woken + 1);
    assert.deepEqual((await get(id))['counts'], { queued: 2, canceled: 599 });
    const { rows } = await service.pool.query<{ message_id: string }>(
      `SELECT message_id FROM outbox WHERE action = 'cancel' AND message_id = ANY ($1) ORDER BY message_id`,
      [await members(id)],
    );
    assert.deepEqual(
      rows.map(({ message_id }) => message_id),
      rest,
    );
    const email = await ours.email(String(rest[0]));
    assert.equal(email['status'], 'canceled');
    assert.deepEqual(
      (email['events'] as Json[]).map(({ type }) => type),
      ['email.scheduled', 'email.canceled'],
    );
  });

  it('all of them: the batch is canceled', async () => {
    const id = await send([ours.mail(later), ours.mail(later)]);
    assert.deepEqual((await cancel(id)).body, { id, status: 'canceled', canceled: 2 });
    const batch = await get(id);
    assert.deepEqual([batch['status'], batch['counts']], ['canceled', { canceled: 2 }]);
    assert.notEqual(batch['completed_at'], null);
  });

  it('the last that waited: the batch is completed', async () => {
    const id = await send([ours.mail(), ours.mail(later)]);
    await change('sent', [(await members(id))[0]]);
    assert.deepEqual((await cancel(id)).body, { id, status: 'completed', canceled: 1 });
  });

  it('422 not_scheduled: none is scheduled, or none any more', async () => {
    const none = await send([ours.mail()]);
    assertRefused(await cancel(none), 422, 'not_scheduled');
    const once = await send([ours.mail(later)]);
    const answers = await Promise.all([cancel(once), cancel(once), cancel(once)]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 422, 422]);
    assert.deepEqual((await get(once))['counts'], { canceled: 1 });
  });

  it('and single cancels at the same time count each email once', async () => {
    const id = await send(Array.from({ length: 40 }, () => ours.mail(later)));
    const singles = (await members(id)).filter((_, index) => index % 2 === 0);
    const [whole, ...single] = await Promise.all([
      cancel(id),
      ...singles.map((each) => ours.call('POST', `/v1/emails/${each}/cancel`)),
    ]);
    const one = single.filter(({ status }) => status === 200).length;
    assert.equal((whole.body as { canceled: number }).canceled + one, 40);
    assert.deepEqual((await get(id))['counts'], { canceled: 40 });
  });

  it('may be asked by a key that only sends, not by one that only reads', async () => {
    const id = await send([ours.mail(later)]);
    assertRefused(await cancel(id, await ours.addKey('read_only')), 403, 'insufficient_scope');
    assert.equal((await cancel(id, await ours.addKey('sending_access'))).status, 200);
  });

  it('takes no body but {}', async () => {
    const id = await send([ours.mail(later)]);
    const path = `/v1/emails/batch/${id}/cancel`;
    assertRefused(await ours.call('POST', path, { json: { x: 1 } }), 422, 'validation_error', 'x');
    assert.equal((await ours.call('POST', path, { json: {} })).status, 200);
  });
});

describe('GET /v1/emails/batch', () => {
  it('lists an organization’s batches newest first, page by page', async () => {
    const own = await service.organization();
    const list = async (query: string) => {
      const answer = await own.call('GET', `/v1/emails/batch${query}`);
      assert.equal(answer.status, 200, answer.text);
      return answer.body as { batches: Json[]; has_more: boolean; next_cursor: string | null };
    };
    assert.deepEqual(await list(''), { batches: [], has_more: false, next_cursor: null });
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.unshift(await send([own.mail(later)], own));
    await own.call('POST', `/v1/emails/batch/${ids[1]}/cancel`);
    const all = await list('');
    assert.deepEqual(
      all.batches.map(({ id }) => id),
      ids,
    );
    assert.deepEqual([all.has_more, all.next_cursor], [false, null]);
    for (const batch of all.batches) {
      const answer = await own.call('GET', `/v1/emails/batch/${String(batch['id'])}`);
      assert.deepEqual(batch, answer.body);
    }
    for (const limit of [1, 2, 4, 5]) {
      const found: unknown[] = [];
      let cursor: string | null = null;
      do {
        const page = await list(`?limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`);
        assert.ok(page.batches.length <= limit);
        assert.equal(page.has_more, page.next_cursor !== null);
        found.push(...page.batches.map(({ id }) => id));
        // A batch that comes meanwhile stands before the first page.
        if (cursor === null) ids.unshift(await send([own.mail()], own));
        cursor = page.next_cursor;
      } while (cursor !== null);
      assert.deepEqual(found, ids.slice(1), `limit ${limit}`);
    }
  });

  for (const [query, param] of [
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=x', 'limit'],
    ['limit=1&limit=2', 'limit'],
    ['cursor=x', 'cursor'],
    ['cursor=', 'cursor'],
    ['status=queued', 'status'],
  ] as const) {
    it(`422: ${query}`, async () => {
      assertRefused(await ours.call('GET', `/v1/emails/batch?${query}`), 422, 'validation_error', param);
    });
  }

  it('422: the cursor of another organization, or of another list', async () => {
    const others = await service.organization();
    for (let i = 0; i < 2; i++) await send([others.mail()], others);
    const cursorOf = async (path: string) => {
      const answer = await others.call('GET', `${path}?limit=1`);
      return String((answer.body as Json)['next_cursor']);
    };
    const ofBatches = await cursorOf('/v1/emails/batch');
    const ofEmails = await cursorOf('/v1/emails');
    assertRefused(await ours.call('GET', `/v1/emails/batch?cursor=${ofBatches}`), 422, 'validation_error', 'cursor');
    assertRefused(await others.call('GET', `/v1/emails/batch?cursor=${ofEmails}`), 422, 'validation_error', 'cursor');
    assert.equal((await others.call('GET', `/v1/emails/batch?cursor=${ofBatches}`)).status, 200);
  });

  it('one email is no batch, and batch is no email', async () => {
    assertRefused(await ours.call('PATCH', '/v1/emails/batch', { json: later }), 404, 'not_found');
    assertRefused(await ours.call('POST', '/v1/emails/batch/cancel'), 404, 'not_found');
  });
});
