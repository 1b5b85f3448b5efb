import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { giveQuota } from '../../src/intake/quota.ts';
import { setQuota, usage } from '../../src/store/limits/quota.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, assertRefused, inFuture, type Organization, startService, useService } from './service.ts';

const service = await useService();

const withQuota = async (monthly: number): Promise<Organization> => {
  const organization = await service.organization();
  await giveQuota(service.pool, organization.id, monthly);
  return organization;
};
const used = async ({ id }: Organization) => (await usage(service.pool, id))?.used;
const stored = async ({ id }: Organization) => {
  const { rowCount } = await service.pool.query('SELECT FROM emails WHERE org_id = $1', [id]);
  return rowCount;
};
const batch = (organization: Organization, emails: number, more: Record<string, string> = {}) =>
  organization.call('POST', '/v1/emails/batch', {
    json: { emails: Array.from({ length: emails }, () => organization.mail()) },
    headers: more,
  });

/** 429 until the month ends, in UTC and by the database's clock. */
async function assertExceeded(answer: Answer, says: string): Promise<void> {
  assertRefused(answer, 429, 'quota_exceeded', undefined, says);
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
    assert.equal((await ours.call('POST', `/v1/emails/${id}/cancel`)).status, 200);
    await ours.sent();
    await assertExceeded(
      await ours.send(),
      'the quota of 2 emails a month leaves 0, and this takes 1; the next month begins at',
    );
    assert.deepEqual([await used(ours), await stored(ours)], [2, 2]);
    assert.equal((await ours.call('PATCH', `/v1/emails/${id}`, { json: {} })).status, 422, 'the rest goes on');
    assert.equal((await ours.call('GET', '/v1/emails')).status, 200);
  });

  it('counts the emails of a batch, all or none', async () => {
    const ours = await withQuota(1_000);
    assert.equal((await batch(ours, 998)).status, 202);
    await assertExceeded(await batch(ours, 3), 'the quota of 1,000 emails a month leaves 2, and this takes 3');
    assert.deepEqual([await used(ours), await stored(ours)], [998, 998]);
    assert.equal((await batch(ours, 2)).status, 202);
    await assertExceeded(await batch(ours, 1), 'the quota of 1,000 emails a month leaves 0, and this takes 1');
    const { body } = await ours.call('GET', '/v1/emails/batch');
    assert.equal((body as { batches: unknown[] }).batches.length, 2, 'a batch that was refused leaves nothing');
  });

  it('counts a marketing email once for each of its recipients, and any other email once', async () => {
    const ours = await withQuota(10);
    const to = ['a@example.net', 'B <b@example.net>', 'c@example.net'];
    await ours.sent({ to, cc: ['d@example.net'] });
    assert.equal(await used(ours), 1);
    // A repeated address is one recipient.
    await ours.sent({ marketing: true, to, cc: ['A@example.net'], bcc: ['d@example.net'] });
    assert.equal(await used(ours), 5);
    const members = [ours.mail(), ours.mail({ marketing: true, to })];
    assert.equal((await ours.call('POST', '/v1/emails/batch', { json: { emails: members } })).status, 202);
    assert.equal(await used(ours), 9);
    await assertExceeded(
      await ours.send({ marketing: true, to: to.slice(0, 2) }),
      'the quota of 10 emails a month leaves 1, and this takes 2',
    );
    const attachments = [{ filename: 'a.txt', content: 'YQ==' }];
    await assertExceeded(
      await ours.send({ marketing: true, to, attachments }),
      'the quota of 10 emails a month leaves 1, and this takes 3',
    );
    // A quota that is given later counts the emails of the month in the same way, but for repeated addresses.
    await giveQuota(service.pool, ours.id, null);
    assert.equal((await giveQuota(service.pool, ours.id, 20)).used, 1 + 5 + 1 + 3);
  });

  it('of nothing lets nothing through; and none is none', async () => {
    const ours = await withQuota(0);
    await assertExceeded(await ours.send(), 'the quota of 0 emails a month leaves 0');
    await assertExceeded(await batch(ours, 1), 'the quota of 0 emails a month leaves 0');
    await giveQuota(service.pool, ours.id, null);
    await ours.sent();
    assert.equal((await batch(ours, 3)).status, 202);
    assert.equal(await used(ours), 4, 'they are counted all the same, from what is stored');
    const { rows } = await service.pool.query('SELECT emails FROM monthly_usage WHERE org_id = $1', [ours.id]);
    assert.deepEqual(rows, [{ emails: '0' }], 'without a quota nobody writes a counter');
  });

  it('does not count chat-app messages', async () => {
    const ours = await withQuota(0);
    await ours.call('POST', '/v1/chatapp/numbers', {
      json: { number: '+12025550177', provider: 'twilio', auth_token: 'token' },
    });
    const answer = await ours.call('POST', '/v1/chatapp', { json: { to: '+14165550123', text: 'Hi.' } });
    assert.equal(answer.status, 202, answer.text);
  });

  it('is told last: what is wrong with the email comes first', async () => {
    const ours = await withQuota(0);
    assertRefused(await ours.send({ subject: '' }), 422, 'validation_error', 'subject');
    assertRefused(await ours.send({ scheduled_at: inFuture({ hours: -1 }) }), 422, 'validation_error', 'scheduled_at');
    assertRefused(await ours.send({ from: 'a@nobody.example' }), 403, 'domain_not_found', 'from');
    const attachments = [{ filename: 'a.exe', content: 'SGk=' }];
    assertRefused(await ours.send({ attachments }), 422, 'invalid_attachment', 'attachments.0.filename');
    const emails = [ours.mail(), ours.mail({ from: 'a@nobody.example' })];
    const answer = await ours.call('POST', '/v1/emails/batch', { json: { emails } });
    assertRefused(answer, 403, 'domain_not_found', 'emails.1.from');
    await assertExceeded(await ours.send({ attachments: [{ filename: 'a.txt', content: 'SGk=' }] }), 'the quota of 0');
  });

  it('a replay costs nothing, and neither does what is refused', async () => {
    const ours = await withQuota(3);
    const once = { headers: { 'idempotency-key': 'once' }, json: ours.mail() };
    for (const replayed of [undefined, 'true', 'true']) {
      const answer = await ours.call('POST', '/v1/emails', once);
      assert.deepEqual([answer.status, answer.headers['idempotent-replayed']], [202, replayed]);
    }
    assert.equal((await ours.send({ from: 'a@nobody.example' })).status, 403);
    assert.equal((await batch(ours, 5, { 'idempotency-key': 'batch' })).status, 429);
    assert.equal((await batch(ours, 2)).status, 202);
    assert.equal(await used(ours), 3);
    assert.equal((await ours.call('POST', '/v1/emails', once)).status, 202, 'also when nothing is left');
    const again = { headers: { 'idempotency-key': 'batch' }, json: ours.mail() };
    assert.equal(
      (await ours.call('POST', '/v1/emails', again)).status,
      429,
      'a key whose request was refused is free for another one',
    );
  });

  it('is exact when many ask at once, singles and batches, through several processes', async () => {
    const ours = await withQuota(50);
    const other = await startService({ pool: service.pool, databaseUrl: service.databaseUrl });
    try {
      const call = (i: number) => {
        const at = i % 2 === 0 ? service : other;
        if (i % 5 > 0) return at.call('POST', '/v1/emails', { key: ours.key, json: ours.mail() });
        const emails = Array.from({ length: 7 }, () => ours.mail());
        return at.call('POST', '/v1/emails/batch', { key: ours.key, json: { emails } });
      };
      const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => call(i)));
      for (const answer of answers) {
        if (answer.status !== 202) assertRefused(answer, 429, 'quota_exceeded');
      }
      assert.deepEqual([await used(ours), await stored(ours)], [50, 50]);
    } finally {
      await other.close();
    }
  });

  it('an email waits for another one that is being counted, and for a batch only at its end', async () => {
    const ours = await withQuota(10_100);
    let sent = 0;
    const over = new AbortController();
    const accepting = batch(ours, 10_000).then(({ status }) => {
      over.abort();
      return status;
    });
    // The batch is being stored, which takes many statements; single emails go on meanwhile.
    await eventually('the batch is being stored', async () => {
      const { rowCount } = await service.pool.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND query LIKE '%mail AS (%' AND xact_start < query_start`,
      );
      return rowCount !== 0;
    });
    while (!over.signal.aborted && sent < 100) {
      assert.equal((await ours.send()).status, 202);
      sent++;
    }
    assert.equal(await accepting, 202);
    // The last of them may have waited for its end.
    assert.ok(sent >= 4, `${sent} single emails while the batch was being stored`);
    assert.equal(await used(ours), await stored(ours));
  });

  it('a burst that must be counted leaves the database to others', async () => {
    const [ours, theirs] = [await withQuota(1_000), await service.organization()];
    await ours.sent();
    const client = await service.pool.connect();
    await client.query('BEGIN');
    await client.query('SELECT FROM monthly_usage WHERE org_id = $1 FOR UPDATE', [ours.id]);
    // More than the pool has connections.
    const burst = Promise.all(Array.from({ length: 40 }, () => ours.send()));
    for (let i = 0; i < 5; i++) assert.equal((await theirs.send()).status, 202);
    await client.query('COMMIT');
    client.release();
    for (const { status } of await burst) assert.equal(status, 202);
    assert.equal(await used(ours), 41);
  });

  it('starts anew with each month, by the database’s clock', async () => {
    const ours = await withQuota(1);
    await ours.sent();
    assert.equal((await ours.send()).status, 429);
    await service.pool.query(`UPDATE monthly_usage SET month = month - interval '1 month' WHERE org_id = $1`, [
      ours.id,
    ]);
    assert.equal(await used(ours), 0);
    await ours.sent();
    assert.equal((await ours.send()).status, 429);
  });

  it('that is given in the middle of a month counts what the month has seen', async () => {
    const ours = await service.organization();
    const ids = [await ours.sent(), await ours.sent(), await ours.sent()];
    await service.pool.query(`UPDATE emails SET created_at = created_at - interval '32 days' WHERE id = $1`, [ids[0]]);
    const given = await giveQuota(service.pool, ours.id, 3);
    assert.deepEqual([given.monthly, given.used], [3, 2]);
    await ours.sent();
    assert.equal((await ours.send()).status, 429);
    await giveQuota(service.pool, ours.id, 4);
    assert.equal(await used(ours), 3, 'another number changes no count');
    await ours.sent();
    await giveQuota(service.pool, ours.id, 2);
    await assertExceeded(await ours.send(), 'the quota of 2 emails a month leaves 0, and this takes 1');
    await assertExceeded(await batch(ours, 1), 'the quota of 2 emails a month leaves 0, and this takes 1');
  });

  it('is one organization’s business', async () => {
    const [ours, theirs] = [await withQuota(1), await service.organization()];
    await ours.sent();
    assert.equal((await ours.send()).status, 429);
    await theirs.sent();
    assert.equal(await setQuota(service.pool, 'org_none', 1), false);
    assert.equal(await usage(service.pool, 'org_none'), undefined);
  });

  it('what is rolled back is not counted', async () => {
    const ours = await withQuota(5);
    await service.pool.query(`ALTER TABLE email_bodies ADD CONSTRAINT unlucky CHECK (body_bytes <> 7) NOT VALID`);
    assert.equal((await ours.send({ text: 'unlucky' })).status, 500);
    const emails = [ours.mail(), ours.mail({ text: 'unlucky' })];
    assert.equal((await ours.call('POST', '/v1/emails/batch', { json: { emails } })).status, 500);
    assert.equal(await used(ours), 0);
  });
});
