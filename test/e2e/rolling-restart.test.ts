import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { makePool } from '../../src/store/postgres/pool.ts';
import { readProvider } from '../faults/evidence.ts';
import { makeGenerator, type SenderEntry, USUAL } from '../faults/generator.ts';
import { openLedger } from '../faults/ledger.ts';
import { makeRandom } from '../faults/random.ts';
import { type ReceiverEntry, startReceiver } from '../faults/receiver.ts';
import { awaitVerdict, summary } from '../faults/harness.ts';
import { makeTenant } from '../faults/tenant.ts';
import { atEnd } from '../support/at-end.ts';
import { built } from '../support/built.ts';
import { compose } from '../support/composed.ts';
import { makeHomeFolder, startOwnServers } from '../support/own-servers.ts';

const SEED = 20_261;
/** About 12 requests per second. */
const LOAD = { lines: 3, rest: 200, batches: 0.03, keyed: 1 };
/** Between the recovery of one process and the end of the next. */
const PAUSE_MS = 500;

/**
 * A rollout of a new version: each process of docker-compose.yml is stopped and started again, one after the other, while
 * all replicas of the API accept messages. Customers repeat unanswered requests with the same Idempotency-Key.
 */
test('a rolling restart loses nothing and sends nothing twice', async (t) => {
  await built();
  const folder = await makeHomeFolder();
  const servers = await startOwnServers(folder);
  const after = atEnd(t);
  after(() => servers.stop());
  const retries = { SEND_MAX_ATTEMPTS: '60', SEND_INITIAL_INTERVAL: '500ms', SEND_MAX_INTERVAL: '5s' };
  const settings = { ...retries, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', LOG_LEVEL: 'warn' };
  const composed = await compose({ folder, ...servers, settings });
  after(() => composed.kill());
  await composed.start();

  const pool = makePool(servers.databaseUrl, 'test', 3, () => undefined);
  after(() => pool.end());
  let turn = 0;
  const service = {
    pool,
    temporalAddress: servers.temporalAddress,
    get url() {
      return composed.urls[turn++ % composed.urls.length] as string;
    },
  };
  const ledgers = join(folder, 'ledgers');
  await mkdir(ledgers);
  const paths = { sender: join(ledgers, 'sender.jsonl'), receiver: join(ledgers, 'receiver.jsonl') };
  const sent = await openLedger<SenderEntry>(paths.sender);
  const received = await openLedger<ReceiverEntry>(paths.receiver);
  const receiver = await startReceiver(received);
  after(async () => {
    await receiver.close();
    await Promise.all([sent.close(), received.close()]);
  });
  const tenant = await makeTenant(service, 1, receiver.url);
  const generator = makeGenerator(service, tenant, 1, sent, makeRandom(SEED), { ...USUAL, ...LOAD });

  generator.start();
  await sleep(2_000);
  const began = Date.now();
  for (const container of composed.containers().filter(({ service: name }) => name !== 'simulator')) {
    const ending = Date.now();
    assert.equal(await container.stop(), 0, `${container.name} exits with 0`);
    const ended = Date.now();
    await container.start();
    await container.healthy();
    t.diagnostic(`${container.name}: ended in ${ended - ending} ms, healthy after another ${Date.now() - ended} ms`);
    await sleep(PAUSE_MS);
  }
  const rolled = Date.now() - began;
  await generator.stop();

  const provider = readProvider(composed.inbox);
  const { verdict } = await awaitVerdict(service, [tenant], { ...paths, provider });
  const { wrong, ...figures } = summary(verdict, []);
  t.diagnostic(JSON.stringify({ ...figures, rolled }));
  assert.deepEqual(wrong, []);
  assert.deepEqual([figures.lost, figures.twice, figures.explained], [0, 0, 0], 'lost, twice, twice and explained');
  assert.ok(figures.accepted > 100, `enough was sent: ${figures.accepted}`);
});
