import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { resumeOrganization, suspendOrganization } from '../../src/accounts/suspension.ts';
import { signedIn, textOf } from '../dashboard/visitor.ts';
import { type Answer, assertRefused, inFuture, type Organization, useService } from './service.ts';
import { connectNumber } from './resources.ts';

const service = await useService();

const suspend = ({ id }: Organization, reason: string | null = null) => suspendOrganization(service.pool, id, reason);
const resume = ({ id }: Organization) => resumeOrganization(service.pool, id);
const sendBatch = (organization: Organization) =>
  organization.call('POST', '/v1/emails/batch', {
    json: { emails: [organization.mail(), organization.mail()] },
  });
const assertSuspended = (answer: Answer) =>
  assertRefused(answer, 403, 'insufficient_scope', undefined, 'this organization is suspended and may not send');
const storedRows = async ({ id }: Organization): Promise<number> => {
  const { rows } = await service.pool.query<{ count: number }>(
    `SELECT ((SELECT count(*) FROM emails WHERE org_id = $1) + (SELECT count(*) FROM batches WHERE org_id = $1)
             + (SELECT count(*) FROM chat_messages WHERE org_id = $1) + (SELECT count(*) FROM file_reservations WHERE org_id = $1))::int
            AS count`,
    [id],
  );
  return rows[0]?.count ?? 0;
};

describe('an organization that the operator suspended', () => {
  it('gets 403 for each request that sends, stores nothing of it, and sends again once it is resumed', async () => {
    const ours = await service.organization();
    const theirs = await service.organization();
    const { number } = await connectNumber(ours);
    const sendText = () =>
      ours.call('POST', '/v1/chatapp', {
        json: { from: number, to: '+14165550123', type: 'text', text: 'Hi' },
      });
    const before = await storedRows(ours);
    await suspend(ours);
    assertSuspended(await ours.send());
    assertSuspended(await ours.send({ scheduled_at: inFuture({ hours: 1 }) }));
    assertSuspended(await ours.send({ attachments: [{ filename: 'a.txt', content: 'SGVsbG8=' }] }));
    assertSuspended(await ours.send({ tags: [{ name: 'new', value: 'tag' }] }));
    assertSuspended(await sendBatch(ours));
    assertSuspended(await sendText());
    assert.equal(await storedRows(ours), before);
    assert.equal((await theirs.send()).status, 202, 'others are not affected');
    await resume(ours);
    assert.deepEqual(
      [(await ours.send()).status, (await sendBatch(ours)).status, (await sendText()).status],
      [202, 202, 202],
    );
  });

  it('still reads, cancels and reschedules, and gets the answer of an earlier request repeated', async () => {
    const ours = await service.organization();
    const request = { json: { emails: [ours.mail()] }, headers: { 'idempotency-key': 'first' } };
    const first = await ours.call('POST', '/v1/emails/batch', request);
    assert.equal(first.status, 202);
    const [scheduled, moved] = [
      await ours.sent({ scheduled_at: inFuture({ hours: 1 }) }),
      await ours.sent({ scheduled_at: inFuture({ hours: 1 }) }),
    ];
    await suspend(ours);
    assert.deepEqual((await ours.call('POST', '/v1/emails/batch', request)).body, first.body);
    assert.equal((await ours.call('GET', '/v1/emails')).status, 200);
    const time = { json: { scheduled_at: inFuture({ hours: 2 }) } };
    assert.equal((await ours.call('PATCH', `/v1/emails/${moved}`, time)).status, 200);
    assert.equal((await ours.call('POST', `/v1/emails/${scheduled}/cancel`)).status, 200);
    assert.equal((await ours.email(moved))['status'], 'scheduled');
  });

  it('is told first what is wrong with the request itself', async () => {
    const ours = await service.organization();
    await suspend(ours);
    assertRefused(await ours.send({ to: [] }), 422, 'validation_error', 'to', '');
    assertRefused(
      await ours.send({ scheduled_at: '2020-01-01T00:00:00Z' }),
      422,
      'validation_error',
      'scheduled_at',
      '',
    );
  });

  it('sees on every page since when and why, until it is resumed', async () => {
    const ours = await service.organization();
    const viewer = await signedIn(service, ours.id, 'viewer');
    const { suspended_at: since } = await suspend(ours, 'Too many <complaints>');
    for (const path of ['/dashboard', '/dashboard/emails', '/dashboard/webhooks']) {
      const { html } = await viewer.get(path);
      assert.match(textOf(html), /suspended this organization at .*: Too many <complaints>\s*\. Nothing is sent/, path);
      assert.ok(html.includes(`datetime="${String(since)}"`), path);
    }
    await resume(ours);
    assert.doesNotMatch((await viewer.get('/dashboard')).html, /suspended this organization/);
  });

  it('keeps its time and takes the new reason when it is suspended again', async () => {
    const ours = await service.organization();
    const first = await suspend(ours, 'first');
    assert.deepEqual(await suspend(ours, 'second'), { ...first, suspended_reason: 'second' });
    assert.deepEqual(await resume(ours), { id: ours.id, suspended_at: null, suspended_reason: null });
    assert.deepEqual(await resume(ours), { id: ours.id, suspended_at: null, suspended_reason: null });
    const absent = { code: 'not_found', param: 'organization' };
    await assert.rejects(suspendOrganization(service.pool, 'org_absent', null), absent);
    await assert.rejects(resumeOrganization(service.pool, 'org_absent'), absent);
    for (const reason of [' ', 'a\nb', 'x'.repeat(501)]) {
      await assert.rejects(suspend(ours, reason), { code: 'validation_error', param: 'reason' });
    }
  });
});
