import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { pino } from 'pino';
import type { WebhookDeps } from '../../src/delivery/webhooks/contract.ts';
import type { EventType } from '../../src/domain/event-types.ts';
import { createEndpoint, editEndpoint, makeEndpointDeps, webhookSeal } from '../../src/accounts/webhooks.ts';
import { listAudit } from '../../src/store/accounts/audit.ts';
import { listDeliveries } from '../../src/store/webhooks/deliveries.ts';
import { findEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { accept, newEmail, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { drainEndpoint } from '../support/webhooks.ts';

const FAILING = 'https://failing.example/hook';
const HEALTHY = 'https://healthy.example/hook';

const { pool } = await useDatabase(10);
/** The status that each URL answers with. */
const statuses = new Map<string, number>();
const bodies: { url: string; body: string }[] = [];
const deps: WebhookDeps = {
  pool,
  seal: webhookSeal(SECRET_KEY),
  connectToEndpoint: (url) => ({
    post: async (_, body) => {
      bodies.push({ url, body });
      return { status: statuses.get(url) ?? 200, retryAfter: null, body: null };
    },
    close: () => undefined,
  }),
  idleTimeoutMs: 50,
  stopping: new AbortController().signal,
  log: pino({ level: 'silent' }),
};

describe('an endpoint that Sendwright disables', () => {
  let orgId: string;
  let domain: string;
  let count = 0;

  beforeEach(async () => {
    domain = `o${++count}.example`;
    orgId = await organization(pool, domain);
    statuses.clear();
    bodies.length = 0;
  });

  const intake = () => makeEndpointDeps(pool, () => undefined, SECRET_KEY, []);
  const endpoint = async (url: string, events: EventType[]): Promise<string> =>
    (await createEndpoint(intake(), orgId, { url, events, description: null })).id;
  const mail = () => accept(pool, orgId, [newEmail({ from_domain: domain })]);
  const disabledEvents = async (id: string) =>
    (await listDeliveries(pool, id, null, null, 100)).filter(({ type }) => type === 'webhook.disabled');

  test('notifies the other endpoints of its organization when it answers 410', async () => {
    const failing = await endpoint(FAILING, []);
    const healthy = await endpoint(HEALTHY, ['webhook.disabled']);
    const uninterested = await endpoint('https://third.example/hook', ['email.bounced']);
    statuses.set(FAILING, 410);
    await mail();
    await drainEndpoint(deps, failing);
    await drainEndpoint(deps, healthy);
    const [posted] = bodies.filter(({ url }) => url === HEALTHY);
    const { type, data } = JSON.parse(posted?.body ?? '{}') as { type: string; data: unknown };
    assert.equal(type, 'webhook.disabled');
    assert.deepEqual(data, { webhookId: failing, url: FAILING, reason: 'it answered 410 Gone' });
    assert.deepEqual(
      [(await disabledEvents(failing)).length, (await disabledEvents(uninterested)).length],
      [0, 0],
      'neither the disabled endpoint nor one with other events gets it',
    );
  });

  test('is shown with its time, and in the audit log as a change by Sendwright, until it is enabled', async () => {
    const failing = await endpoint(FAILING, []);
    statuses.set(FAILING, 410);
    await mail();
    await drainEndpoint(deps, failing);
    const shown = await findEndpoint(pool, orgId, failing);
    assert.deepEqual([shown?.status, shown?.disabled_reason], ['disabled', 'it answered 410 Gone']);
    assert.ok(shown?.disabled_at);
    const audit = await listAudit(pool, orgId, null, 10);
    assert.deepEqual(
      audit.map(({ actor_kind, action, target, detail }) => ({ actor_kind, action, target, detail })),
      [
        {
          actor_kind: 'system',
          action: 'webhooks.disable',
          target: failing,
          detail: { url: FAILING, reason: 'it answered 410 Gone' },
        },
      ],
    );
    const enabled = await editEndpoint(intake(), orgId, failing, { status: 'enabled' });
    assert.equal(enabled.disabled_at, null);
  });

  test('notifies once after five days of failures, also when its deliveries of that day fail together', async () => {
    const failing = await endpoint(FAILING, ['email.queued']);
    const healthy = await endpoint(HEALTHY, ['webhook.disabled']);
    statuses.set(FAILING, 500);
    for (let i = 0; i < 3; i++) await mail();
    await pool.query(`UPDATE webhook_deliveries SET tries = 5 WHERE endpoint_id = $1`, [failing]);
    await pool.query(`UPDATE webhook_endpoints SET failing_since = now() - interval '121 hours' WHERE id = $1`, [
      failing,
    ]);
    await drainEndpoint(deps, failing);
    await drainEndpoint(deps, failing);
    const events = await disabledEvents(healthy);
    assert.equal(events.length, 1);
    await drainEndpoint(deps, healthy);
    const { data } = JSON.parse(bodies.find(({ url }) => url === HEALTHY)?.body ?? '{}') as {
      data: Record<string, string>;
    };
    assert.equal(data['reason'], 'all attempts of 5 days have failed');
    const failingForHours = (Date.now() - Date.parse(data['failingSince'] ?? '')) / 3_600_000;
    assert.ok(failingForHours > 120 && failingForHours < 122, `${failingForHours} hours`);
  });

  test('disables two endpoints that fail at the same time, without a deadlock', async () => {
    const urls = [FAILING, HEALTHY];
    const ids = await Promise.all(urls.map((url) => endpoint(url, [])));
    for (const url of urls) statuses.set(url, 500);
    await mail();
    await pool.query(`UPDATE webhook_deliveries SET tries = 5`);
    await pool.query(`UPDATE webhook_endpoints SET failing_since = now() - interval '6 days' WHERE org_id = $1`, [
      orgId,
    ]);
    await Promise.all(ids.map((id) => drainEndpoint(deps, id)));
    const audit = await listAudit(pool, orgId, null, 10);
    assert.deepEqual(new Set(audit.map(({ target }) => target)), new Set(ids));
  });
});
