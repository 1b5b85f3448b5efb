import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { changeQuota } from '../../src/intake/quota.ts';
import { setQuota, usage } from '../../src/store/limits/quota.ts';
import { eventually } from '../support/eventually.ts';
import { connectNumber } from './resources.ts';
import { type Answer, assertRefused, inFuture, type Organization, startService, useService } from './service.ts';

const service = await useService();

const withQuota = async (monthly: number): Promise<Organization> => {
  const organization = await service.organization();
  await changeQuota(service.pool, organization.id, monthly);
  return organization;
};
const usedBy = async ({ id }: Organization) => (await usage(service.pool, id))?.used;
const storedBy = async ({ id }: Organization) =>
  (await service.pool.query('SELECT FROM emails WHERE org_id = $1', [id])).rowCount;
const post = (organization: Organization, emails: readonly object[], headers: Record<string, string> = {}) =>
  organization.call('POST', '/v1/emails/batch', { json: { emails }, headers });
const mails = (organization: Organization, count: number) => Array.from({ length: count }, () => organization.mail());
const sendBatch = (organization: Organization, count: number, headers?: Record<string, string>) =>
  post(organization, mails(organization, count), headers);
const assertStatus = async (status: number, answer: Promise<Answer>) => {
  const { status: actual, text } = await answer;
  assert.equal(actual, status, text);
};

/** The answer is 429 with the seconds until the month ends, in UTC and by the database's clock. */
async function assertExceeded(answer: Answer, message: string): Promise<void> {
  assertRefused(answer, 429, 'quota_exceeded', undefined, message);
  const { rows } = await service.pool.query<{ ends: number }>(
    `SELECT extract(epoch FROM (date_trunc('month', now() AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC')::int AS ends`,
  );
  const wait = Number(answer.headers['retry-after']);
  const left = (rows[0]?.ends ?? 0) - Date.parse(String(answer.headers['date'])) / 1_000;
  assert.ok(Math.abs(wait - left) <= 5, `Retry-After: ${wait}, and the month ends in ${left}`);
}

describe('a monthly quota', () => {
  it('counts an email when it is created, scheduled ones too, and canceling gives nothing back', async () => {
    const ours = await withQuota(2);
    const id = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
    await assertStatus(200, ours.call('POST', `/v1/emails/${id}/cancel`));
    await ours.sent();
    await assertExceeded(
      await ours.send(),
      'the quota of 2 emails a month leaves 0, and this takes 1; the next month begins at',
    );
    assert.deepEqual([await usedBy(ours), await storedBy(ours)], [2, 2]);
    await assertStatus(200, ours.call('GET', '/v1/emails'));
  });

  it('counts the emails of a batch, all or none', async () => {
    const ours = await withQuota(1_000);
    await assertStatus(202, sendBatch(ours, 998));
    await assertExceeded(await sendBatch(ours, 3), 'the quota of 1,000 emails a month leaves 2, and this takes 3');
    assert.deepEqual([await usedBy(ours), await storedBy(ours)], [998, 998]);
    await assertStatus(202, sendBatch(ours, 2));
    await assertExceeded(await sendBatch(ours, 1), 'the quota of 1,000 emails a month leaves 0, and this takes 1');
    const { body } = await ours.call('GET', '/v1/emails/batch');
    assert.equal((body as { batches: unknown[] }).batches.length, 2, 'a refused batch is not stored');
  });

  it('counts a marketing email once for each of its recipients, and any other email once', async () => {
    const ours = await withQuota(10);
    const to = ['a@example.net', 'B <b@example.net>', 'c@example.net'];
    await ours.sent({ to, cc: ['d@example.net'] });
    assert.equal(await usedBy(ours), 1);
    // A repeated address is one recipient.
    await ours.sent({ marketing: true, to, cc: ['A@example.net'], bcc: ['d@example.net'] });
    assert.equal(await usedBy(ours), 5);
    await assertStatus(202, post(ours, [ours.mail(), ours.mail({ marketing: true, to })]));
    assert.equal(await usedBy(ours), 9);
    for (const [count, attachments] of [
      [2, []],
      [3, [{ filename: 'a.txt', content: 'YQ==' }]],
    ] as const) {
      const answer = await ours.send({ marketing: true, to: to.slice(0, count), attachments });
      await assertExceeded(answer, `the quota of 10 emails a month leaves 1, and this takes ${count}`);
    }
    // The stored emails of the month are counted in the same way, except for repeated addresses.
    await changeQuota(service.pool, ours.id, null);
    assert.equal(await usedBy(ours), 1 + 5 + 1 + 3);
    assert.equal((await changeQuota(service.pool, ours.id, 20)).used, 1 + 5 + 1 + 3);
  });

  it('of 0 refuses every email but no chat-app message', async () => {
    const ours = await withQuota(0);
    await assertExceeded(await ours.send(), 'the quota of 0 emails a month leaves 0');
    await assertExceeded(await sendBatch(ours, 1), 'the quota of 0 emails a month leaves 0');
    const { number: from } = await connectNumber(ours);
    await assertStatus(202, ours.call('POST', '/v1/chatapp', { json: { from, to: '+14165550123', text: 'Hi.' } }));
  });

  it('is counted from the stored emails while there is none, without writing a counter', async () => {
    const ours = await withQuota(0);
    await changeQuota(service.pool, ours.id, null);
    await ours.sent();
    await assertStatus(202, sendBatch(ours, 3));
    assert.equal(await usedBy(ours), 4);
    const { rows } = await service.pool.query('SELECT emails FROM monthly_usage WHERE org_id = $1', [ours.id]);
    assert.deepEqual(rows, [{ emails: '0' }]);
  });

  it('returns 429 after every other error', async () => {
    const ours = await withQuota(0);
    const withFile = (filename: string) => ours.send({ attachments: [{ filename, content: 'SGk=' }] });
    assertRefused(await ours.send({ scheduled_at: inFuture({ hours: -1 }) }), 422, 'validation_error', 'scheduled_at');
    assertRefused(await ours.send({ from: 'a@unregistered.example' }), 403, 'domain_not_found', 'from');
    assertRefused(await withFile('a.exe'), 422, 'invalid_attachment', 'attachments.0.filename');
    const batch = await post(ours, [ours.mail(), ours.mail({ from: 'a@unregistered.example' })]);
    assertRefused(batch, 403, 'domain_not_found', 'emails.1.from');
    await assertExceeded(await withFile('a.txt'), 'the quota of 0');
  });

  it('does not count replays and refused requests, whose keys are free again', async () => {
    const ours = await withQuota(3);
    const request = { headers: { 'idempotency-key': 'first' }, json: ours.mail() };
    for (const replayed of [undefined, 'true', 'true']) {
      const answer = await ours.call('POST', '/v1/emails', request);
      assert.deepEqual([answer.status, answer.headers['idempotent-replayed']], [202, replayed]);
    }
    await assertStatus(403, ours.send({ from: 'a@unregistered.example' }));
    await assertStatus(429, sendBatch(ours, 5, { 'idempotency-key': 'batch' }));
    await assertStatus(202, sendBatch(ours, 2));
    assert.equal(await usedBy(ours), 3);
    await assertStatus(202, ours.call('POST', '/v1/emails', request));
    const again = { headers: { 'idempotency-key': 'batch' }, json: ours.mail() };
    await assertStatus(429, ours.call('POST', '/v1/emails', again));
  });

  it('is exact for concurrent emails and batches through several processes', async (t) => {
    const ours = await withQuota(50);
    const other = await startService({ pool: service.pool });
    t.after(other.close);
    const send = (i: number) => {
      const process = i % 2 === 0 ? service : other;
      if (i % 5 > 0) return process.call('POST', '/v1/emails', { key: ours.key, json: ours.mail() });
      return process.call('POST', '/v1/emails/batch', { key: ours.key, json: { emails: mails(ours, 7) } });
    };
    // 60 single emails, so that they reach the quota also if every batch comes too late to fit.
    for (const answer of await Promise.all(Array.from({ length: 75 }, (_, i) => send(i)))) {
      if (answer.status !== 202) assertRefused(answer, 429, 'quota_exceeded');
    }
    assert.deepEqual([await usedBy(ours), await storedBy(ours)], [50, 50]);
  });

  it('lets single emails pass while a batch is being stored', async () => {
    const ours = await withQuota(10_100);
    let sent = 0;
    const stored = new AbortController();
    const accepting = sendBatch(ours, 10_000).then(({ status }) => {
      stored.abort();
      return status;
    });
    await eventually('the batch is being stored', async () => {
      const { rowCount } = await service.pool.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND query LIKE '%judged AS MATERIALIZED%' AND xact_start < query_start`,
      );
      return rowCount !== 0;
    });
    for (; !stored.signal.aborted && sent < 100; sent++) await ours.sent();
    assert.equal(await accepting, 202);
    assert.ok(sent >= 4, `${sent} single emails while the batch was being stored`);
    assert.equal(await usedBy(ours), await storedBy(ours));
  });

  it('leaves database connections to others while a burst waits for the counter', async () => {
    const [ours, theirs] = [await withQuota(1_000), await service.organization()];
    await ours.sent();
    const client = await service.pool.connect();
    await client.query('BEGIN');
    await client.query('SELECT FROM monthly_usage WHERE org_id = $1 FOR UPDATE', [ours.id]);
    // More than the pool has connections.
    const burst = Promise.all(Array.from({ length: 40 }, () => ours.send()));
    for (let i = 0; i < 5; i++) await theirs.sent();
    await client.query('COMMIT');
    client.release();
    for (const { status } of await burst) assert.equal(status, 202);
    assert.equal(await usedBy(ours), 41);
  });

  it('begins again each month, by the clock of the database', async () => {
    const ours = await withQuota(1);
    await ours.sent();
    await assertStatus(429, ours.send());
    const text = `UPDATE monthly_usage SET month = month - interval '1 month' WHERE org_id = $1`;
    await service.pool.query(text, [ours.id]);
    assert.equal(await usedBy(ours), 0);
    await ours.sent();
    await assertStatus(429, ours.send());
  });

  it('that is set within a month counts the emails of that month', async () => {
    const ours = await service.organization();
    const ids = [await ours.sent(), await ours.sent(), await ours.sent()];
    await service.pool.query(`UPDATE emails SET created_at = created_at - interval '32 days' WHERE id = $1`, [ids[0]]);
    const quota = await changeQuota(service.pool, ours.id, 3);
    assert.deepEqual([quota.monthly, quota.used], [3, 2]);
    await ours.sent();
    await assertStatus(429, ours.send());
    await changeQuota(service.pool, ours.id, 4);
    assert.equal(await usedBy(ours), 3, 'another quota does not change the count');
    await ours.sent();
    await changeQuota(service.pool, ours.id, 2);
    await assertExceeded(await ours.send(), 'the quota of 2 emails a month leaves 0, and this takes 1');
    await assertExceeded(await sendBatch(ours, 1), 'the quota of 2 emails a month leaves 0, and this takes 1');
    assert.equal(await setQuota(service.pool, 'org_none', 1), false);
    assert.equal(await usage(service.pool, 'org_none'), undefined);
  });

  it('does not count emails whose transaction is rolled back', async () => {
    const ours = await withQuota(5);
    await service.pool.query(`ALTER TABLE email_bodies ADD CONSTRAINT unlucky CHECK (body_bytes <> 7) NOT VALID`);
    await assertStatus(500, ours.send({ text: 'unlucky' }));
    await assertStatus(500, post(ours, [ours.mail(), ours.mail({ text: 'unlucky' })]));
    assert.equal(await usedBy(ours), 0);
  });
});
