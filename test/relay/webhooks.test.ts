import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { pino } from 'pino';
import { makeWebhookIntake, createEndpoint } from '../../src/accounts/webhooks.ts';
import { type Relay, startRelay, TemporalUnreachable } from '../../src/relay/relay.ts';
import { makeTemporalDispatcher } from '../../src/relay/temporal.ts';
import { lockWakes, type OutboxRow, type WebhookRow } from '../../src/store/outbox/outbox.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { accept, newEmail, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { testNamespace, type TestNamespace } from '../support/temporal.ts';
import { silenceTemporal } from '../support/workflows.ts';

const RETRY = { maximumAttempts: 16, initialInterval: 2_000, maximumInterval: 1_800_000 };

const { pool } = await useDatabase(10);
const orgId = await organization(pool);
const intake = makeWebhookIntake(pool, () => undefined, 'a secret key for tests, and long enough', []);
const wish = { url: 'https://example.com/hook?token=secret', events: [], description: null };
const endpoint = (await createEndpoint(intake, orgId, wish)).id;

describe('endpoints are woken', () => {
  const relays: Relay[] = [];

  afterEach(async () => {
    await Promise.all(relays.splice(0).map((relay) => relay.stop()));
    await pool.query('DELETE FROM outbox');
  });

  const mail = (n: number) =>
    accept(
      pool,
      orgId,
      Array.from({ length: n }, () => newEmail()),
    );
  const left = async () => (await pool.query(`SELECT FROM outbox WHERE action = 'webhook'`)).rows.length;

  function start(dispatch: (row: OutboxRow) => Promise<void>): void {
    relays.push(startRelay({ pool, log: pino({ level: 'silent' }), startsPerSecond: 1_000_000, dispatch }));
  }

  test('once, however many deliveries ask for it', async () => {
    for (let i = 0; i < 5; i++) await mail(1);
    assert.equal(await left(), 5);
    const woken: WebhookRow[] = [];
    start(async (row) => {
      if (row.action === 'webhook') woken.push(row);
    });
    await eventually('nothing is left', async () => (await left()) === 0);
    assert.deepEqual(
      woken.map(({ message_id, org_id, url, more_ids }) => [message_id, org_id, url, more_ids.length]),
      [[endpoint, orgId, 'https://example.com/hook?token=secret', 4]],
    );
  });

  test('when Temporal is back', async () => {
    await mail(2);
    let away = true;
    let woken = 0;
    start(async (row) => {
      if (away) throw new TemporalUnreachable('away');
      if (row.action === 'webhook') woken++;
    });
    await eventually('it was tried', async () => (await left()) > 0);
    away = false;
    await eventually('nothing is left', async () => (await left()) === 0);
    assert.equal(woken, 1);
  });

  test('by one relay at a time, and a row that Temporal refused waits', async () => {
    await mail(1);
    await transaction(pool, async (client) => {
      assert.equal((await lockWakes(client, 10)).length, 1);
      assert.deepEqual(await transaction(pool, (other) => lockWakes(other, 10)), []);
    });
    let refusals = 0;
    start(async (row) => {
      if (row.action !== 'webhook') return;
      refusals++;
      throw new Error('no');
    });
    await eventually('it was refused', () => refusals === 1);
    await eventually('it waits', async () => {
      const { rows } = await pool.query<{ tries: number }>(
        `SELECT tries FROM outbox WHERE action = 'webhook' AND retry_at > now()`,
      );
      return rows[0]?.tries === 1;
    });
  });

  test('not when they are disabled: then their workflow, if there is one, is told', async () => {
    await mail(1);
    await pool.query(`UPDATE webhook_endpoints SET status = 'disabled' WHERE id = $1`, [endpoint]);
    const [row] = await lockWakes(pool, 10);
    assert.ok(row?.action === 'webhook', 'it is about the endpoint');
    assert.equal(row.url, null);
    await pool.query(`UPDATE webhook_endpoints SET status = 'enabled' WHERE id = $1`, [endpoint]);
  });
});

describe('what Temporal is asked for an endpoint', () => {
  let namespace: TestNamespace;
  before(async () => {
    silenceTemporal();
    namespace = await testNamespace();
  });
  after(() => namespace.close());

  test('its workflow is woken, started where there is none, and only told when it is disabled', async () => {
    const { client } = namespace;
    const carry = makeTemporalDispatcher(client, RETRY);
    const row: WebhookRow = {
      id: '1',
      action: 'webhook',
      message_id: 'wh_1',
      tries: 0,
      more_ids: [],
      org_id: 'org_1',
      url: 'https://example.com:8443/hook?token=secret',
    };
    await carry({ ...row, url: null });
    const handle = client.workflow.getHandle('wh_1');
    await assert.rejects(handle.describe(), 'a disabled one is not started');

    await carry(row);
    const first = await handle.describe();
    assert.deepEqual([first.type, first.taskQueue, first.status.name], ['webhookEndpoint', 'messages', 'RUNNING']);
    assert.equal(await first.staticSummary(), 'Webhooks to example.com:8443');
    const attributes = Object.fromEntries(
      first.typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]),
    );
    assert.deepEqual([attributes['Channel'], attributes['OrgId']], ['webhook', 'org_1']);
    await carry(row);
    await carry({ ...row, url: null });
    assert.equal((await handle.describe()).runId, first.runId);
    const { events = [] } = await handle.fetchHistory();
    const signals = (events ?? []).flatMap((event) => event.workflowExecutionSignaledEventAttributes?.signalName ?? []);
    assert.deepEqual(signals, ['wake', 'wake', 'wake']);
    assert.ok(!JSON.stringify(events).includes('secret'), 'nothing of its URL but the host');

    await handle.terminate();
    await carry(row);
    assert.notEqual((await handle.describe()).runId, first.runId, 'one that has ended is started again');
  });
});
