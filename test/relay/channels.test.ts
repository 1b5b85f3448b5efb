import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addDomain, removeDomain } from '../../src/accounts/domains.ts';
import { createEndpoint, makeWebhookIntake } from '../../src/accounts/webhooks.ts';
import { projectChatReports } from '../../src/projection/chat.ts';
import { TemporalUnreachable } from '../../src/relay/relay.ts';
import { wakeDomain } from '../../src/store/domains/domains.ts';
import {
  type ChatRow,
  type DomainRow,
  lockDomains,
  lockWakes,
  type OutboxRow,
  type WebhookRow,
} from '../../src/store/outbox/outbox.ts';
import { type Db, transaction } from '../../src/store/postgres/pool.ts';
import { acceptText, connect, TO } from '../store/chats.ts';
import { accept, newEmail, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { attributesOf, readHistory, RETRY, useDispatcher, useRelays } from './harness.ts';

const { pool } = await useDatabase(10);
const orgId = await organization(pool);
const from = (await connect(pool, orgId)).number;
const relays = useRelays(pool);
const isAction =
  <A extends OutboxRow['action']>(...actions: A[]) =>
  (row: OutboxRow): row is OutboxRow & { action: A } =>
    (actions as string[]).includes(row.action);

describe('chat-app messages in the outbox', () => {
  async function store(n: number): Promise<string[]> {
    const ids: string[] = [];
    for (let i = 0; i < n; i++) ids.push(await acceptText(pool, orgId, from));
    return ids;
  }

  test('are dispatched once each, also after Temporal was unreachable', async () => {
    const ids = await store(150);
    let tries = 0;
    const relay = relays.start(async () => {
      if (++tries <= 100) throw new TemporalUnreachable('away');
    });
    await relays.isEmpty();
    assert.deepEqual(relay.ids().sort(), ids);
    const { id, message_id, ...row } = relay.rows[0] as ChatRow;
    assert.ok(id && message_id);
    const expected = { action: 'chat', tries: 0, again: false, org_id: orgId, to: TO, type: 'text' };
    assert.deepEqual(row, { ...expected, open: true, traceparent: null });
  });

  test('are not open when they were reported before', async () => {
    const [id = ''] = await store(1);
    const report = { change: 'sent', messageId: id, providerMessageId: 'SM1', dedupeKey: 'SM1 sent' } as const;
    await projectChatReports(pool, 'twilio', [report]);
    const { rows } = relays.start();
    await relays.isEmpty();
    assert.deepEqual(
      rows.filter(isAction('chat')).map(({ open }) => open),
      [false],
    );
  });

  test('have a separate rate limit from email', async () => {
    await store(200);
    const emails = Array.from({ length: 120 }, () => newEmail());
    let nowMs = 0;
    const relay = relays.start(undefined, { startsPerSecond: 20, now: () => nowMs });
    await accept(pool, orgId, emails);
    relay.wake();
    const chats = () => relay.rows.filter(isAction('chat')).length;
    await eventually('the emails are dispatched', () => relay.rows.some(isAction('start', 'group')));
    await eventually('the burst of messages is dispatched', () => chats() === 50);
    nowMs += 1_000;
    relay.wake();
    await eventually('the messages of a second are dispatched', () => chats() === 70);
    await eventually('only the other messages wait', async () => (await relays.rowsLeft()).length === 130);
  });
});

describe('wakes of endpoints and domains in the outbox', () => {
  const intake = makeWebhookIntake(pool, () => undefined, 'a secret key for tests, and long enough', []);
  let count = 0;
  const url = 'https://example.com/hook?token=secret';

  /** Writes several rows for one endpoint or domain. */
  async function wakeEndpoint(times: number) {
    await pool.query('DELETE FROM webhook_endpoints');
    const { id } = await createEndpoint(intake, orgId, { url, events: [], description: null });
    for (let i = 0; i < times; i++) await accept(pool, orgId, [newEmail()]);
    return { id, name: url };
  }
  async function registerDomain(times: number) {
    const { id, name } = await addDomain(pool, orgId, `d${++count}.example.com`, false);
    for (let i = 1; i < times; i++) await wakeDomain(pool, id);
    return { id, name };
  }

  for (const [action, write, lock] of [
    ['webhook', wakeEndpoint, lockWakes],
    ['domain', registerDomain, lockDomains],
  ] as const) {
    test(`${action}: several rows are dispatched once, also after Temporal was unreachable`, async () => {
      const { id, name } = await write(5);
      let tries = 0;
      const { rows } = relays.start(async (row) => {
        if (row.action === action && tries++ === 0) throw new TemporalUnreachable('away');
      });
      await relays.isEmpty();
      assert.deepEqual(
        rows
          .filter((row): row is WebhookRow | DomainRow => row.action === action)
          .map((row) => [
            row.message_id,
            row.org_id,
            row.action === 'domain' ? row.name : row.url,
            row.more_ids.length,
          ]),
        [[id, orgId, name, 4]],
      );
    });

    test(`${action}: rows are locked by one relay at a time`, async () => {
      await write(1);
      const lockRows = lock as (db: Db, limit: number) => Promise<OutboxRow[]>;
      await transaction(pool, async (client) => {
        assert.equal((await lockRows(client, 10)).filter((row) => row.action === action).length, 1);
        assert.deepEqual(await transaction(pool, (other) => lockRows(other, 10)), []);
      });
    });
  }

  test('a row that Temporal refused is deferred', async () => {
    await wakeEndpoint(1);
    const relay = relays.start((row) =>
      row.action === 'webhook' ? Promise.reject(new Error('no')) : Promise.resolve(),
    );
    const [row] = await eventually('it is the only row', async () => {
      const rows = await relays.rowsLeft();
      return rows.length === 1 && rows[0]?.tries === 1 && rows;
    });
    assert.ok(row?.retry_at);
    assert.ok(relay.rows.every(({ action }) => action === 'start'));
  });

  test('rows of disabled endpoints and of trusted or deleted domains start no workflow', async () => {
    await wakeEndpoint(1);
    await pool.query(`UPDATE webhook_endpoints SET status = 'disabled'`);
    const [wake] = await lockWakes(pool, 10);
    assert.ok(wake?.action === 'webhook');
    assert.equal(wake.url, null);

    const trusted = await addDomain(pool, orgId, 'trusted.example.com', true);
    assert.deepEqual(await lockDomains(pool, 10), []);
    await wakeDomain(pool, trusted.id);
    const { id } = await registerDomain(1);
    await removeDomain({ pool, wakeRelay: () => undefined }, orgId, id);
    const rows = (await lockDomains(pool, 10)).map((row) => [row.message_id, row.org_id, row.name]);
    assert.deepEqual(
      rows.sort(),
      [trusted.id, id].sort().map((each) => [each, null, null]),
    );
  });
});

describe('the dispatcher', () => {
  const { dispatch, handleOf, runOf } = useDispatcher();

  const common = { id: '1', tries: 0, org_id: 'org_1' };
  const webhook: WebhookRow = {
    ...{ ...common, action: 'webhook', message_id: 'wh_1', more_ids: [] },
    url: 'https://example.com:8443/hook?token=secret',
  };
  const domain: DomainRow = { ...common, action: 'domain', message_id: 'dm_1', more_ids: [], name: 'example.com' };

  for (const [row, stopped, type, summary, channel, signal] of [
    [webhook, { ...webhook, url: null }, 'webhookEndpoint', 'Webhooks to example.com:8443', 'webhook', 'wake'],
    [domain, { ...domain, org_id: null, name: null }, 'watchDomain', 'Domain example.com', 'domain', 'lookAgain'],
  ] as const)
    test(`starts or signals ${type}, and only signals it when the row is stopped`, async () => {
      await dispatch(stopped);
      await assert.rejects(handleOf(row).describe(), { name: 'WorkflowNotFoundError' });
      await dispatch(row);
      const first = await handleOf(row).describe();
      assert.deepEqual([first.type, first.taskQueue, first.status.name], [type, 'messages', 'RUNNING']);
      assert.equal(await first.staticSummary(), summary);
      assert.deepEqual(attributesOf(first), { Channel: channel, OrgId: 'org_1' });
      await dispatch(row);
      await dispatch(stopped);
      assert.equal(await runOf(row), first.runId);
      const { signals, text } = await readHistory(handleOf(row));
      assert.deepEqual(
        signals.map(([name]) => name),
        [signal, signal, signal],
      );
      assert.ok(!text.includes('secret'), 'the history contains only the host of the URL');
      await handleOf(row).terminate();
      await dispatch(row);
      assert.notEqual(await runOf(row), first.runId, 'an ended workflow is started again');
    });

  const chat = (message_id: string, open = true): ChatRow => ({
    ...{ ...common, action: 'chat', message_id, again: false },
    ...{ to: TO, type: 'template', open, traceparent: null },
  });

  test('starts deliverChat without the text and recipient of the message', async () => {
    const row = chat('wa_1');
    await dispatch(row);
    const described = await handleOf(row).describe();
    assert.deepEqual([described.type, described.taskQueue], ['deliverChat', 'messages']);
    assert.deepEqual([described.priority?.priorityKey, described.priority?.fairnessKey], [2, 'org_1']);
    assert.equal(await described.staticSummary(), 'Chat-app message (template) to +491***89');
    assert.deepEqual(attributesOf(described), { Channel: 'chatapp', OrgId: 'org_1' });
    const { input, text } = await readHistory(handleOf(row));
    assert.deepEqual(input, { id: row.message_id, retry: RETRY });
    assert.doesNotMatch(text, /15123456789/);
  });

  test('starts no deliverChat for an ended message, and a new run only for chat_again', async () => {
    const ended = chat('wa_2', false);
    await dispatch(ended);
    await assert.rejects(handleOf(ended).describe(), { name: 'WorkflowNotFoundError' });

    const row = chat('wa_3');
    await dispatch(row);
    const first = await runOf(row);
    await dispatch(row);
    await dispatch({ ...row, again: true });
    assert.equal(await runOf(row), first, 'a running workflow is left alone');
    await handleOf(row).terminate();
    await dispatch(row);
    assert.equal(await runOf(row), first, 'a repeated start starts nothing');
    await dispatch({ ...row, again: true });
    assert.notEqual(await runOf(row), first);
  });
});
