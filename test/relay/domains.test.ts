import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { pino } from 'pino';
import { addDomain, removeDomain } from '../../src/accounts/domains.ts';
import { type Relay, startRelay, TemporalUnreachable } from '../../src/relay/relay.ts';
import { makeTemporalDispatcher } from '../../src/relay/temporal.ts';
import { type DomainRow, lockDomains, type OutboxRow } from '../../src/store/outbox/outbox.ts';
import { wakeDomain } from '../../src/store/domains/domains.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { testNamespace, type TestNamespace } from '../support/temporal.ts';
import { silenceTemporal } from '../support/workflows.ts';

const RETRY = { maximumAttempts: 16, initialInterval: 2_000, maximumInterval: 1_800_000 };

const { pool } = await useDatabase(10);
const orgId = await organization(pool);

describe('domains are watched', () => {
  let count = 0;
  const relays: Relay[] = [];

  afterEach(async () => {
    await Promise.all(relays.splice(0).map((relay) => relay.stop()));
    await pool.query('DELETE FROM outbox');
  });

  const add = (trusted = false) => addDomain(pool, orgId, `d${++count}.example.com`, trusted);
  const left = async () => (await pool.query(`SELECT FROM outbox WHERE action = 'domain'`)).rows.length;

  function start(dispatch: (row: OutboxRow) => Promise<void>): void {
    relays.push(startRelay({ pool, log: pino({ level: 'silent' }), startsPerSecond: 1_000_000, dispatch }));
  }

  test('from their registration on; a domain once, however many rows speak of it', async () => {
    const { id, name } = await add();
    for (let i = 0; i < 4; i++) await wakeDomain(pool, id);
    assert.equal(await left(), 5);
    const rows: DomainRow[] = [];
    start(async (row) => {
      if (row.action === 'domain') rows.push(row);
    });
    await eventually('nothing is left', async () => (await left()) === 0);
    assert.deepEqual(
      rows.map(({ message_id, org_id, name: named, more_ids }) => [message_id, org_id, named, more_ids.length]),
      [[id, orgId, name, 4]],
    );
  });

  test('not when they are taken on trust or deleted: then their workflow, if there is one, is told', async () => {
    const trusted = await add(true);
    assert.equal(await left(), 0);
    await wakeDomain(pool, trusted.id);
    const { id } = await add();
    await removeDomain({ pool, wakeRelay: () => undefined }, orgId, id);
    const rows = await lockDomains(pool, 10);
    assert.deepEqual(
      rows.map((row) => [row.message_id, row.org_id, row.name]).sort(),
      [trusted.id, id].sort().map((each) => [each, null, null]),
    );
  });

  test('by one relay at a time, and when Temporal is back', async () => {
    await add();
    await transaction(pool, async (client) => {
      assert.equal((await lockDomains(client, 10)).length, 1);
      assert.deepEqual(await transaction(pool, (other) => lockDomains(other, 10)), []);
    });
    let away = true;
    let asked = 0;
    let done = 0;
    start(async () => {
      asked++;
      if (away) throw new TemporalUnreachable('away');
      done++;
    });
    await eventually('it was tried', () => asked > 0);
    away = false;
    await eventually('nothing is left', async () => (await left()) === 0);
    assert.equal(done, 1);
  });
});

describe('what Temporal is asked for a domain', () => {
  let namespace: TestNamespace;
  before(async () => {
    silenceTemporal();
    namespace = await testNamespace();
  });
  after(() => namespace.close());

  test('its workflow is started where there is none, woken where there is, and only told when it is not watched', async () => {
    const { client } = namespace;
    const carry = makeTemporalDispatcher(client, RETRY);
    const row: DomainRow = {
      ...{ id: '1', action: 'domain', message_id: 'dm_1', tries: 0, more_ids: [] },
      org_id: 'org_1',
      name: 'example.com',
    };
    await carry({ ...row, org_id: null, name: null });
    const handle = client.workflow.getHandle('dm_1');
    await assert.rejects(handle.describe(), 'one that is not watched is not started');

    await carry(row);
    const first = await handle.describe();
    assert.deepEqual([first.type, first.taskQueue, first.status.name], ['watchDomain', 'messages', 'RUNNING']);
    assert.equal(await first.staticSummary(), 'Domain example.com');
    const attributes = Object.fromEntries(
      first.typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]),
    );
    assert.deepEqual([attributes['Channel'], attributes['OrgId']], ['domain', 'org_1']);
    await carry(row);
    await carry({ ...row, org_id: null, name: null });
    assert.equal((await handle.describe()).runId, first.runId);
    const { events = [] } = await handle.fetchHistory();
    const signals = (events ?? []).flatMap((event) => event.workflowExecutionSignaledEventAttributes?.signalName ?? []);
    assert.deepEqual(signals, ['lookAgain', 'lookAgain', 'lookAgain']);

    await handle.terminate();
    await carry(row);
    assert.notEqual((await handle.describe()).runId, first.runId, 'one that has ended is started again');
  });
});
