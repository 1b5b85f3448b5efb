import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startMetrics } from '../../src/telemetry/metrics.ts';
import { useService } from './service.ts';

const metrics = startMetrics();
const service = await useService({
  metrics: { type: metrics.registry.contentType, text: () => metrics.registry.metrics() },
});
const ours = await service.organization();
after(() => metrics.stop());

async function page(): Promise<string> {
  const answer = await service.call('GET', '/metrics');
  assert.equal(answer.status, 200, answer.text);
  return answer.text;
}

/** The value of a sample, or undefined. */
async function value(sample: string): Promise<number | undefined> {
  const line = (await page()).split('\n').find((each) => each.startsWith(`${sample} `));
  return line === undefined ? undefined : Number(line.slice(sample.length));
}

test('GET /metrics needs no key and returns the format of Prometheus', async () => {
  const { headers, text } = await service.call('GET', '/metrics');
  assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
  for (const name of ['sendwright_messages_accepted_total', 'nodejs_eventloop_lag_seconds']) {
    assert.match(text, new RegExp(`^# TYPE ${name} `, 'm'));
  }
  assert.equal((await service.call('POST', '/metrics')).status, 405);
});

test('changes of chat-app messages and SMS start at 0', async () => {
  for (const kind of ['chatapp', 'sms'])
    assert.equal(await value(`sendwright_message_events_total{kind="${kind}",event="rescheduled"}`), 0);
});

test('an accepted email is counted once, refused and repeated requests are not', async () => {
  const single = 'sendwright_messages_accepted_total{kind="email",by="single"}';
  const batch = 'sendwright_messages_accepted_total{kind="email",by="batch"}';
  const headers = { 'idempotency-key': 'once' };
  const json = ours.mail();
  for (let i = 0; i < 2; i++) assert.equal((await ours.call('POST', '/v1/emails', { json, headers })).status, 202);
  assert.equal((await ours.send({ subject: '' })).status, 422);
  assert.equal((await ours.send({ from: 'a@other.example' })).status, 403);
  assert.equal(await value(single), 1);
  const emails = Array.from({ length: 30 }, () => ours.mail());
  assert.equal((await ours.call('POST', '/v1/emails/batch', { json: { emails } })).status, 202);
  const broken = [...emails, ours.mail({ from: 'a@other.example' })];
  assert.equal((await ours.call('POST', '/v1/emails/batch', { json: { emails: broken } })).status, 403);
  assert.deepEqual([await value(single), await value(batch)], [1, 30]);
});

test('requests are counted by their route, without ids and unknown paths', async () => {
  const id = await ours.sent();
  await ours.email(id);
  await ours.call('GET', '/v1/canarypath');
  await service.call('GET', '/canarypath?canaryquery=1');
  await ours.call('GET', '/v1/emails/canaryid');
  const text = await page();
  for (const [labels, count] of [
    ['method="GET",route="/v1/emails/:id",status="200"', 1],
    ['method="GET",route="/v1/emails/:id",status="404"', 1],
    ['method="GET",route="none",status="404"', 2],
  ] as const) {
    assert.match(text, new RegExp(`^sendwright_http_request_duration_seconds_count\\{${labels}\\} ${count}$`, 'm'));
  }
  for (const word of ['canary', id, ours.id, ours.domain, ours.key, 'example.net']) {
    assert.ok(!text.includes(word), `${word} is in the metrics`);
  }
});
