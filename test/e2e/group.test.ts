import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { DevFile } from '../../src/main/dev-file.ts';
import { eventually } from '../support/eventually.ts';
import { clientOf, emptyHome, readInbox, runningWorkflows, startSendwright } from '../support/start.ts';
import { setBehaviour } from '../../dev/simulator/set-behaviour.ts';

/** More than the token bucket of workflow starts holds: they share a workflow. */
const SIZE = 120;
/** Milliseconds until a dead worker's heartbeat times out and its emails are delivered. */
const TIMEOUT_MS = 90_000;

/** Recipients of the emails that the provider accepted, once for each email. */
async function accepted(dev: DevFile): Promise<string[]> {
  return (await readInbox(dev)).filter(({ subject }) => subject === 'Hello').flatMap(({ to }) => to);
}

/** Kills the worker while a group is in flight and asserts that each email is sent exactly once. */
async function killWhileSending(
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
  // Reports of the provider make them delivered while a group still has to send them. Upkeep runs all the time; after its
  // worker was killed, it is repeated minutes later.
  const types = `WorkflowType IN ('deliverGroup', 'deliverEmail')`;
  await eventually('no delivery is open', async () => (await runningWorkflows(dev, types)) === 0, TIMEOUT_MS);
  assert.deepEqual((await accepted(dev)).sort(), emails.map(({ to }) => to).sort());
}

// Concurrently: each mostly waits, in its own stack.
describe('a group whose worker is killed', { concurrency: true }, () => {
  test('a worker killed while the provider has a group but has not answered: each email arrives once', async (t) => {
    await killWhileSending(t, { latency_ms: 8_000 }, async (dev) => (await accepted(dev)).length === SIZE);
  });

  test('a worker killed before the provider has a group: each email arrives once', async (t) => {
    const queued = async (dev: DevFile) => {
      const { emails } = await clientOf(dev).emails.list({ status: 'queued', limit: 1 }).page();
      return emails.length > 0;
    };
    // Otherwise all of it could be sent before the test looks.
    await killWhileSending(t, { fail_next: true }, queued);
  });
});
