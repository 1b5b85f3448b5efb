import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { Client, Connection } from '@temporalio/client';
import type { DevFile } from '../../src/main/dev-file.ts';
import { eventually } from '../support/eventually.ts';
import { clientOf, emptyHome, startSendwright } from '../support/start.ts';
import { setBehaviour } from '../../dev/simulator/set-behaviour.ts';

/** More than the budget of starts begins with: they share a workflow. */
const SIZE = 120;
/** Milliseconds until a dead worker's heartbeat is missed, and what follows. */
const TIMEOUT_MS = 90_000;

/** Addresses of the emails that the provider took, once for each time. */
async function taken(dev: DevFile): Promise<string[]> {
  const messages = (await (await fetch(`${dev.inbox_url ?? ''}/messages?limit=1000`)).json()) as {
    to: string[];
    subject: string;
  }[];
  return messages.filter(({ subject }) => subject === 'Hello').flatMap(({ to }) => to);
}

async function isNothingDelivered({ temporal_address: address }: DevFile): Promise<boolean> {
  const connection = await Connection.connect({ address });
  try {
    // Upkeep runs all the time; when its worker is killed, it is repeated minutes later.
    const query = `ExecutionStatus = 'Running' AND WorkflowType IN ('deliverGroup', 'deliverEmail')`;
    const { count } = await new Client({ connection }).workflow.count(query);
    return count === 0;
  } finally {
    await connection.close();
  }
}

/** Kills the worker while a group is in flight and asserts that each email is sent exactly once. */
async function killInTheMiddle(
  t: TestContext,
  behaviour: object,
  isDue: (dev: DevFile) => Promise<boolean>,
): Promise<void> {
  const started = await startSendwright(t, await emptyHome());
  const dev = await started.dev();
  await setBehaviour(dev.inbox_url ?? '', behaviour);
  const emails = Array.from({ length: SIZE }, (_, i) => {
    return { from: dev.from, to: `person-${i}@example.net`, subject: 'Hello', text: 'Hi.' };
  });
  const sendwright = clientOf(dev);
  const { id } = await sendwright.emails.batch(emails);
  await eventually('the group is in flight', () => isDue(dev), 20_000);
  process.kill(dev.processes.worker ?? 0, 'SIGKILL');
  await setBehaviour(dev.inbox_url ?? '', { latency_ms: 0 });
  const delivered = async () => (await sendwright.batches.get(id)).counts.delivered === SIZE;
  await eventually('all of them are delivered', delivered, TIMEOUT_MS);
  // Reports of the provider make them delivered while a group still has to send them.
  await eventually('no delivery is open', () => isNothingDelivered(dev), TIMEOUT_MS);
  assert.deepEqual((await taken(dev)).sort(), emails.map(({ to }) => to).sort());
}

// Side by side: each mostly waits, in a stack of its own.
describe('a group whose worker is killed', { concurrency: true }, () => {
  test('a worker killed while the provider has a group but has not answered: each email arrives once', async (t) => {
    await killInTheMiddle(t, { latency_ms: 8_000 }, async (dev) => (await taken(dev)).length === SIZE);
  });

  test('a worker killed before the provider has a group: each email arrives once', async (t) => {
    const queued = async (dev: DevFile) => {
      const { emails } = await clientOf(dev).emails.list({ status: 'queued', limit: 1 }).page();
      return emails.length > 0;
    };
    await killInTheMiddle(t, {}, queued);
  });
});
