import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchDatabase, watchPool, watchProviderLine } from '../../src/telemetry/gauges.ts';
import { startMetrics } from '../../src/telemetry/metrics.ts';
import {
  messagesAccepted,
  requestAnswered,
  outboxDispatched,
  messagesClaimed,
  messagesSent,
  eventsRecorded,
  webhookPosted,
  providerCalled,
  ambiguousCallsResolved,
  tally,
} from '../../src/telemetry/topics.ts';

/** The samples of a page that are about these metrics, without buckets and without zeros. */
async function samples(page: Promise<string>, pattern: RegExp): Promise<string[]> {
  const lines = (await page).split('\n').filter((line) => pattern.test(line) && !line.startsWith('#'));
  return lines.filter((line) => !/_bucket\{/.test(line) && !line.endsWith(' 0')).sort();
}

test('counts published topics under labels from short lists', async (t) => {
  const { registry, stop } = startMetrics();
  t.after(stop);
  messagesAccepted.publish({ kind: 'email', by: 'batch', count: 10_000 });
  messagesAccepted.publish({ kind: 'chatapp', by: 'single', count: 1 });
  eventsRecorded.publish({ kind: 'email', event: 'sent', count: 500 });
  eventsRecorded.publish({
    kind: 'email',
    event: 'bounced',
    count: 3,
    reasons: tally(['unknown', 'mailbox_full', 'unknown']),
  });
  messagesClaimed.publish({ kind: 'email', overdueSeconds: [0.2, 3] });
  messagesSent.publish({ kind: 'email', secondsAfterDue: [0.1, 0.1, 7] });
  providerCalled.publish({
    provider: 'smtp',
    operation: 'send',
    seconds: 0.5,
    outcomes: tally(['sent', 'busy', 'sent']),
  });
  ambiguousCallsResolved.publish({ kind: 'email', provider: 'smtp', outcome: 'risked', count: 2 });
  outboxDispatched.publish({ action: 'group', outcome: 'done', count: 1 });
  webhookPosted.publish({ outcome: 'gone', seconds: 0.25 });
  requestAnswered.publish({ method: 'GET', route: '/v1/emails/:id', status: 200, seconds: 0.004 });
  assert.deepEqual(await samples(registry.metrics(), /^sendwright_/), [
    'sendwright_ambiguous_sends_total{kind="email",provider="smtp",outcome="risked"} 2',
    'sendwright_bounces_total{reason="mailbox_full"} 1',
    'sendwright_bounces_total{reason="unknown"} 2',
    'sendwright_http_request_duration_seconds_count{method="GET",route="/v1/emails/:id",status="200"} 1',
    'sendwright_http_request_duration_seconds_sum{method="GET",route="/v1/emails/:id",status="200"} 0.004',
    'sendwright_message_events_total{kind="email",event="bounced"} 3',
    'sendwright_message_events_total{kind="email",event="sent"} 500',
    'sendwright_messages_accepted_total{kind="chatapp",by="single"} 1',
    'sendwright_messages_accepted_total{kind="email",by="batch"} 10000',
    'sendwright_outbox_dispatched_total{action="group",outcome="done"} 1',
    'sendwright_provider_call_duration_seconds_count{provider="smtp",operation="send"} 1',
    'sendwright_provider_call_duration_seconds_sum{provider="smtp",operation="send"} 0.5',
    'sendwright_provider_outcomes_total{provider="smtp",operation="send",outcome="busy"} 1',
    'sendwright_provider_outcomes_total{provider="smtp",operation="send",outcome="sent"} 2',
    'sendwright_schedule_lateness_seconds_count{kind="email"} 2',
    'sendwright_schedule_lateness_seconds_sum{kind="email"} 3.2',
    'sendwright_time_to_provider_seconds_count{kind="email"} 3',
    'sendwright_time_to_provider_seconds_sum{kind="email"} 7.2',
    'sendwright_webhook_attempt_duration_seconds_count{outcome="gone"} 1',
    'sendwright_webhook_attempt_duration_seconds_sum{outcome="gone"} 0.25',
  ]);
});

test('shows rare counters as 0 before their first increase', async (t) => {
  const { registry, stop } = startMetrics();
  t.after(stop);
  const page = await registry.metrics();
  for (const line of [
    'sendwright_ambiguous_sends_total{kind="chatapp",provider="meta",outcome="given_up"} 0',
    'sendwright_message_events_total{kind="email",event="rejected"} 0',
    'sendwright_message_events_total{kind="chatapp",event="failed"} 0',
    'sendwright_bounces_total{reason="spam_block"} 0',
  ]) {
    assert.ok(page.includes(`${line}\n`), line);
  }
});

test('counts nothing after stop', async () => {
  const { registry, stop } = startMetrics();
  stop();
  messagesAccepted.publish({ kind: 'email', by: 'single', count: 1 });
  assert.deepEqual(await samples(registry.metrics(), /^sendwright_/), []);
});

test('shows the current connections of the pool', async (t) => {
  const { registry, stop } = startMetrics();
  t.after(stop);
  const pool = { totalCount: 20, idleCount: 3, waitingCount: 7 };
  watchPool(registry, pool);
  assert.deepEqual(await samples(registry.metrics(), /^sendwright_database/), [
    'sendwright_database_pool_connections{state="busy"} 17',
    'sendwright_database_pool_connections{state="idle"} 3',
    'sendwright_database_pool_waiting 7',
  ]);
});

test('exports the calls to each provider by their state', async (t) => {
  const { registry, stop } = startMetrics();
  t.after(stop);
  watchProviderLine(registry, () => [{ provider: 'smtp', running: 13, late: 2, waiting: 4 }]);
  assert.deepEqual(await samples(registry.metrics(), /^sendwright_provider_calls/), [
    'sendwright_provider_calls{provider="smtp",state="late"} 2',
    'sendwright_provider_calls{provider="smtp",state="running"} 13',
    'sendwright_provider_calls{provider="smtp",state="waiting"} 4',
  ]);
});

test('queries the database once per five seconds', async (t) => {
  const { registry, stop } = startMetrics();
  t.after(stop);
  let queries = 0;
  watchDatabase(registry, async () => {
    queries++;
    return {
      outbox: [{ fleet: 'email', count: 5, oldest_seconds: 1.5 }],
      upkeep: [{ task: 'putBackOverdue', age_seconds: 12.5, interval_seconds: 60 }],
      pauses: [
        { provider: 'postmark', sender: '' },
        { provider: 'smtp', sender: 'hanging:org_1' },
        { provider: 'twilio', sender: 'num_1' },
        { provider: 'twilio', sender: 'num_2' },
      ],
      partitionOverdueSeconds: 86_500,
      backlog: [
        { fleet: 'email', count: 10_001, oldest_seconds: 60 },
        { fleet: 'webhooks', count: 1, oldest_seconds: 2 },
      ],
      relay: { lagMs: 1_250, isBehind: true },
    };
  });
  const expected = [
    'sendwright_backlog_oldest_seconds{fleet="email"} 60',
    'sendwright_backlog_oldest_seconds{fleet="webhooks"} 2',
    'sendwright_backlog{fleet="email"} 10001',
    'sendwright_backlog{fleet="webhooks"} 1',
    'sendwright_database_up 1',
    'sendwright_outbox_oldest_seconds{fleet="email"} 1.5',
    'sendwright_outbox_rows{fleet="email"} 5',
    'sendwright_partition_overdue_seconds 86500',
    'sendwright_provider_paused{provider="postmark",scope="account"} 1',
    'sendwright_provider_paused{provider="smtp",scope="organization"} 1',
    'sendwright_provider_paused{provider="twilio",scope="sender"} 2',
    'sendwright_relay_lag_seconds 1.25',
    'sendwright_relay_shares_workflows 1',
  ];
  const watched = /^sendwright_(?:backlog|outbox_(?:rows|oldest)|database_up|partition|provider_paused|relay_)/;
  for (let i = 0; i < 3; i++) assert.deepEqual(await samples(registry.metrics(), watched), expected);
  assert.equal(queries, 1);
});

test('reports a database that fails or does not answer for three seconds as down', async () => {
  const watched = /^sendwright_(?:backlog|outbox_(?:rows|oldest)|database_up)/;
  for (const read of [() => Promise.reject(new Error('away')), () => new Promise<never>(() => undefined)]) {
    const { registry, stop } = startMetrics();
    watchDatabase(registry, read);
    const page = await registry.metrics();
    assert.deepEqual(
      page.split('\n').filter((line) => watched.test(line)),
      ['sendwright_database_up 0'],
    );
    stop();
  }
});
