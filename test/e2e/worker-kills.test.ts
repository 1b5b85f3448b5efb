import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { accept, newEmail, organization } from '../store/mail.ts';
import { eventually } from '../support/eventually.ts';
import { postmarkSink, startWorkerProcess } from './worker-process.ts';

const EMAILS = 300;
const KILLS = 4;
/** For each attempt that a kill ended, Postmark's "not found" is confirmed a minute later. */
const TIMEOUT_MS = 400_000;

test('emails in flight when workers are killed are sent by an isolated process, and none is quarantined', async (t) => {
  // This sink finds no email, so those in flight at a kill are sent again.
  const sink = await postmarkSink(t, 1_000);
  const settings = { POSTMARK_SERVER_TOKEN: 'server-token', POSTMARK_BASE_URL: sink.url };
  const worker = await startWorkerProcess(t, settings, { heapMb: 512, startsPerSecond: 20 });
  const { pool } = worker;
  const orgId = await organization(pool);
  worker.startRelay();
  const count = async (condition: string): Promise<number> => {
    const { rows } = await pool.query<{ count: number }>(
      `SELECT count(*)::integer AS count FROM emails WHERE ${condition}`,
    );
    return rows[0]?.count ?? NaN;
  };
  for (let kill = 0; kill < KILLS; kill++) {
    await accept(
      pool,
      orgId,
      Array.from({ length: EMAILS / KILLS }, () => newEmail()),
    );
    await eventually('emails are in flight', async () => {
      const { rows } = await pool.query('SELECT 1 FROM attempts WHERE outcome IS NULL LIMIT 1');
      return rows.length > 0;
    });
    await sleep(500);
    await worker.restart();
  }
  await eventually(
    'all emails have ended',
    async () => (await count(`status IN ('queued', 'scheduled')`)) === 0,
    TIMEOUT_MS,
  );
  assert.equal(await count(`status = 'sent'`), EMAILS);
  assert.equal(await count('crashes > 0'), 0);
  const suspects = await count('suspected_at IS NOT NULL');
  t.diagnostic(`${suspects} of ${EMAILS} emails were delivered by the isolated process`);
  assert.ok(suspects > 0);
});
