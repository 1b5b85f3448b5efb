import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EmailChange } from '../../src/domain/email/states.ts';
import { project } from '../../src/projection/emails.ts';
import { allPages, type Answer, assertRefused, bodyOf, inFuture, useService } from './service.ts';

/** Getting, canceling and listing batches. */
const service = await useService();
const ours = await service.organization();

type Json = Record<string, unknown>;
const later = { scheduled_at: inFuture({ hours: 1 }) };

async function send(emails: Json[], by = ours): Promise<string> {
  return bodyOf<{ id: string }>(await by.call('POST', '/v1/emails/batch', { json: { emails } }), 202).id;
}

async function get(id: string): Promise<Json> {
  return bodyOf(await ours.call('GET', `/v1/emails/batch/${id}`), 200);
}

const cancel = (id: string): Promise<Answer> => ours.call('POST', `/v1/emails/batch/${id}/cancel`);

async function members(id: string): Promise<string[]> {
  const { rows } = await service.pool.query<{ id: string }>('SELECT id FROM emails WHERE batch_id = $1 ORDER BY id', [
    id,
  ]);
  return rows.map((row) => row.id);
}

/** Applies a change as a worker or a provider reports it. */
async function change(name: Exclude<EmailChange, 'rescheduled'>, ids: readonly (string | undefined)[]): Promise<void> {
  const emails = ids.map((id) => ({ id: String(id), error: 'why' }));
  assert.equal((await project(service.pool, name, emails)).length, ids.length);
}

/** Counts the emails themselves by status. */
async function counted(id: string): Promise<Json> {
  const { rows } = await service.pool.query<{ status: string; count: number }>(
    'SELECT status, count(*)::int FROM emails WHERE batch_id = $1 GROUP BY status',
    [id],
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

describe('GET /v1/emails/batch/:id', () => {
  it('goes from queued through processing to completed, with the number of emails in each status', async () => {
    const id = await send([...Array.from({ length: 4 }, () => ours.mail()), ours.mail(later), ours.mail(later)]);
    const [a, b, c, d, e, f] = await members(id);
    const assertBatch = async (status: string, counts: Json) => {
      const batch = await get(id);
      assert.deepEqual(Object.keys(batch), ['id', 'total', 'status', 'created_at', 'completed_at', 'counts']);
      assert.deepEqual([batch['id'], batch['total'], batch['status']], [id, 6, status]);
      assert.deepEqual(batch['counts'], counts);
      assert.deepEqual(counts, await counted(id));
      assert.equal(batch['completed_at'] === null, status !== 'completed');
    };
    await assertBatch('queued', { queued: 4, scheduled: 2 });
    await change('claimed', [e]);
    await assertBatch('queued', { queued: 5, scheduled: 1 });
    await change('sent', [a]);
    await assertBatch('processing', { queued: 4, scheduled: 1, sent: 1 });
    await change('sent', [b, c]);
    await change('rejected', [d]);
    await change('delivered', [a, b]);
    await assertBatch('processing', { queued: 1, scheduled: 1, sent: 1, delivered: 2, rejected: 1 });
    await change('failed', [e]);
    assert.equal((await ours.call('POST', `/v1/emails/${f}/cancel`)).status, 200);
    const { completed_at: at } = await get(id);
    assert.equal((await ours.email(String(f)))['last_event_at'], at);
    await service.pool.query('SELECT pg_sleep(0.01)');
    await change('complained', [a]);
    await assertBatch('completed', { sent: 1, delivered: 1, complained: 1, canceled: 1, rejected: 1, failed: 1 });
    assert.equal((await get(id))['completed_at'], at, 'later reports do not change completed_at');
  });
});

describe('POST /v1/emails/batch/:id/cancel', () => {
  it('cancels every scheduled email and notifies the relay of each', async () => {
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

  it('cancels the batch if all its emails were scheduled, and completes it if all others were sent', async () => {
    const id = await send([ours.mail(later), ours.mail(later)]);
    assert.deepEqual((await cancel(id)).body, { id, status: 'canceled', canceled: 2 });
    const { status, counts, completed_at: at } = await get(id);
    assert.deepEqual([status, counts], ['canceled', { canceled: 2 }]);
    assert.notEqual(at, null);
    const mixed = await send([ours.mail(), ours.mail(later)]);
    await change('sent', [(await members(mixed))[0]]);
    assert.deepEqual((await cancel(mixed)).body, { id: mixed, status: 'completed', canceled: 1 });
  });

  it('returns 422 not_scheduled if no email is scheduled, and to all but one of concurrent requests', async () => {
    assertRefused(await cancel(await send([ours.mail()])), 422, 'not_scheduled');
    const id = await send([ours.mail(later)]);
    const answers = await Promise.all([cancel(id), cancel(id), cancel(id)]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 422, 422]);
    assert.deepEqual((await get(id))['counts'], { canceled: 1 });
  });

  it('counts each email once if single emails are canceled concurrently', async () => {
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
});

it('GET /v1/emails/batch lists batches latest first, page by page', async () => {
  const own = await service.organization();
  assert.deepEqual(await allPages(own, '/v1/emails/batch', 4), []);
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) ids.unshift(await send([own.mail(later)], own));
  await own.call('POST', `/v1/emails/batch/${ids[1]}/cancel`);
  for (const limit of [1, 4, 5]) {
    const listed = await allPages<Json>(own, '/v1/emails/batch', limit);
    const got = ids.map(async (id) => (await own.call('GET', `/v1/emails/batch/${id}`)).body);
    assert.deepEqual(listed, await Promise.all(got));
  }
});
