import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { resumeOrganization, suspendOrganization } from '../../src/accounts/suspension.ts';
import { signedIn, textOf } from '../dashboard/visitor.ts';
import { assertRefused, inFuture, type Organization, useService } from './service.ts';
import { connectNumber } from './resources.ts';

const service = await useService();

const suspend = ({ id }: Organization, reason: string | null = null) => suspendOrganization(service.pool, id, reason);
const resume = ({ id }: Organization) => resumeOrganization(service.pool, id);
const sendBatch = (organization: Organization) =>
  organization.call('POST', '/v1/emails/batch', {
    json: { emails: [organization.mail(), organization.mail()] },
  });
const storedRows = async ({ id }: Organization): Promise<number> => {
  const tables = ['emails', 'batches', 'chat_messages', 'file_reservations'].map(
    (name) => `SELECT org_id FROM ${name}`,
  );
  const text = `SELECT FROM (${tables.join(' UNION ALL ')}) AS stored WHERE org_id = $1`;
  return (await service.pool.query(text, [id])).rowCount ?? 0;
};

describe('a suspended organization', () => {
  it('gets 403 for every request that sends, stores nothing, and sends again after it is resumed', async () => {
    const [ours, theirs] = [await service.organization(), await service.organization()];
    const { number } = await connectNumber(ours);
    const sendText = () => ours.call('POST', '/v1/chatapp', { json: { from: number, to: '+14165550123', text: 'Hi' } });
    const before = await storedRows(ours);
    await suspend(ours);
    for (const answer of [
      await ours.send(),
      await ours.send({ scheduled_at: inFuture({ hours: 1 }) }),
      await ours.send({ attachments: [{ filename: 'a.txt', content: 'SGVsbG8=' }] }),
      await ours.send({ tags: [{ name: 'new', value: 'tag' }] }),
      await sendBatch(ours),
      await sendText(),
    ]) {
      assertRefused(answer, 403, 'insufficient_scope', undefined, 'this organization is suspended and may not send');
    }
    assert.equal(await storedRows(ours), before);
    await theirs.sent();
    assertRefused(await ours.send({ to: [] }), 422, 'validation_error', 'to');
    assertRefused(await ours.send({ scheduled_at: '2020-01-01T00:00:00Z' }), 422, 'validation_error', 'scheduled_at');
    await resume(ours);
    for (const { status } of [await ours.send(), await sendBatch(ours), await sendText()]) assert.equal(status, 202);
  });

  it('still reads, cancels, reschedules and gets replays', async () => {
    const ours = await service.organization();
    const request = { json: { emails: [ours.mail()] }, headers: { 'idempotency-key': 'first' } };
    const first = await ours.call('POST', '/v1/emails/batch', request);
    assert.equal(first.status, 202);
    const scheduled_at = inFuture({ hours: 1 });
    const [canceled, moved] = [await ours.sent({ scheduled_at }), await ours.sent({ scheduled_at })];
    await suspend(ours);
    assert.deepEqual((await ours.call('POST', '/v1/emails/batch', request)).body, first.body);
    for (const answer of [
      await ours.call('GET', '/v1/emails'),
      await ours.call('PATCH', `/v1/emails/${moved}`, { json: { scheduled_at: inFuture({ hours: 2 }) } }),
      await ours.call('POST', `/v1/emails/${canceled}/cancel`),
    ]) {
      assert.equal(answer.status, 200, answer.text);
    }
  });

  it('sees the time and reason on every page until it is resumed', async () => {
    const ours = await service.organization();
    const viewer = await signedIn(service, ours.id, 'viewer');
    const { suspended_at: since } = await suspend(ours, 'Too many <complaints>');
    for (const path of ['/dashboard', '/dashboard/emails']) {
      const { html } = await viewer.get(path);
      assert.match(textOf(html), /suspended this organization on .*: Too many <complaints>\s*\. Nothing is sent/, path);
      assert.ok(html.includes(`datetime="${String(since)}"`), path);
    }
    await resume(ours);
    assert.doesNotMatch((await viewer.get('/dashboard')).html, /suspended this organization/);
  });

  it('keeps its time and takes the new reason when it is suspended again', async () => {
    const ours = await service.organization();
    const first = await suspend(ours, 'first');
    assert.deepEqual(await suspend(ours, 'second'), { ...first, suspended_reason: 'second' });
    for (let i = 0; i < 2; i++)
      assert.deepEqual(await resume(ours), { id: ours.id, suspended_at: null, suspended_reason: null });
    const absent = { code: 'not_found', param: 'organization' };
    await assert.rejects(suspendOrganization(service.pool, 'org_absent', null), absent);
    await assert.rejects(resumeOrganization(service.pool, 'org_absent'), absent);
  });
});
