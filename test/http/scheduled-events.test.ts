import assert from 'node:assert/strict';
import { it } from 'node:test';
import { assertEvent, type Described } from './described.ts';
import { inFuture, useService } from './service.ts';

const service = await useService();
const ours = await service.organization();

it('email.scheduled and email.rescheduled state when the email will be sent, email.queued does not', async () => {
  const events = ['email.queued', 'email.scheduled', 'email.rescheduled'];
  const created = await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hook', events } });
  const { id: endpoint } = created.body as { id: string };
  const [first, second] = [inFuture({ hours: 1 }), inFuture({ hours: 2 })];
  const email = await ours.sent({ scheduled_at: first });
  const moved = await ours.call('PATCH', `/v1/emails/${email}`, { json: { scheduled_at: second } });
  assert.equal(moved.status, 200, moved.text);
  await ours.sent();

  const api = (await service.call('GET', '/openapi.json')).body as Described;
  const list = await ours.call('GET', `/v1/webhooks/${endpoint}/deliveries`);
  const { deliveries } = list.body as { deliveries: { id: string }[] };
  const times = new Map<string, unknown>();
  for (const { id } of deliveries) {
    const answer = await ours.call('GET', `/v1/webhooks/${endpoint}/deliveries/${id}`);
    const { payload } = answer.body as { payload: { type: string; data: Record<string, unknown> } };
    assertEvent(api, payload);
    times.set(payload.type, payload.data['scheduledAt']);
  }
  const scheduled = (at: string) => new Date(at).toISOString();
  assert.deepEqual(Object.fromEntries(times), {
    'email.queued': undefined,
    'email.rescheduled': scheduled(second),
    'email.scheduled': scheduled(first),
  });
});
