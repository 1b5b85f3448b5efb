import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accept, newEmail, organization } from '../store/mail.ts';
import { eventually } from '../support/eventually.ts';
import { postmarkSink, smtpSink, startWorkerProcess } from './worker-process.ts';

const HEAP_MB = 512;
/** An idle worker has about 200 MB. */
const MAX_RESIDENT_MB = 450;
const RECIPIENTS = 150;
const SMALL = 50;
/** Long, since the machine may be busy. */
const TIMEOUT_MS = 300_000;

for (const provider of ['postmark', 'smtp'] as const) {
  test(`a marketing email of ${RECIPIENTS} copies of 2 MB by ${provider} ends no worker and delays no other email`, async (t) => {
    const sink = provider === 'postmark' ? await postmarkSink(t) : await smtpSink(t);
    const settings =
      provider === 'postmark'
        ? { POSTMARK_SERVER_TOKEN: 'server-token', POSTMARK_BASE_URL: sink.url }
        : { SMTP_URL: sink.url };
    const worker = await startWorkerProcess(t, settings, { heapMb: HEAP_MB, startsPerSecond: 1 });
    const { pool } = worker;
    const sender = await organization(pool);
    const other = await organization(pool, 'other.example');
    const body = `${'😀'.repeat(250_000)} {{{unsubscribe_url}}}`;
    const to = Array.from({ length: RECIPIENTS }, (_, i) => `reader-${i}@example.net`);
    const large = newEmail({ marketing: true, to, html: body, text: body });
    const from = { from: 'hello@other.example', from_domain: 'other.example' };
    const small = Array.from({ length: SMALL }, () => newEmail(from));
    await accept(pool, sender, [large]);
    await accept(pool, other, small);
    worker.startRelay();

    const pending = async (): Promise<number> => {
      assert.equal(worker.ended(), undefined);
      const { rows } = await pool.query<{ count: number }>(
        `SELECT count(*)::integer AS count FROM emails WHERE status <> 'sent'`,
      );
      return rows[0]?.count ?? NaN;
    };
    await eventually('all others are sent', async () => (await pending()) <= 1, TIMEOUT_MS);
    await eventually('all are sent', async () => (await pending()) === 0, TIMEOUT_MS);
    assert.equal(
      sink.requests.reduce((sum, { emails }) => sum + emails, 0),
      RECIPIENTS + SMALL,
    );
    const largest = Math.max(...sink.requests.map(({ bytes }) => bytes));
    assert.ok(largest < 20_000_000, `${largest} bytes in one request`);
    const { rows } = await pool.query(
      `SELECT status, count(*)::integer AS copies FROM email_recipients GROUP BY status`,
    );
    assert.deepEqual(rows, [{ status: 'sent', copies: RECIPIENTS }]);
    t.diagnostic(`peak memory of the worker: ${Math.round(worker.peakMb())} MB`);
    assert.ok(worker.peakMb() < MAX_RESIDENT_MB, `the worker had ${worker.peakMb()} MB`);
  });
}
