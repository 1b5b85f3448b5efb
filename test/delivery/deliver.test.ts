import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import type { EmailDeps } from '../../src/delivery/email/contract.ts';
import { organizationFixture } from '../support/organization.ts';
import { harnessWithProvider } from './harness.ts';

const { pool, orgId } = await organizationFixture(10);
// All tests share one account.
afterEach(async () => {
  await pool.query('DELETE FROM provider_pauses');
});

const make = (settings?: Partial<EmailDeps>) => harnessWithProvider(pool, orgId, settings);

describe('the outcome of a provider call', () => {
  for (const [outcome, bounceReason] of [
    [{ kind: 'bounced', reason: 'provider_suppressed', detail: 'inactive' }, 'provider_suppressed'],
    [{ kind: 'rejected', detail: 'no such sender' }, null],
  ] as const)
    test(`${outcome.kind} ends it with that status and the provider's message`, async () => {
      const { accept, deliverOne, provider, email, timeline, attempts } = make();
      const { id, version } = await accept();
      const { kind: status, detail } = outcome;
      provider.acts.push(outcome);
      assert.deepEqual(await deliverOne({ id, version }), { id, state: 'ended', status, provider: 'postmark' });
      const row = await email(id);
      assert.deepEqual(
        [row.status, row.error, row.bounce_reason, row.provider],
        [status, detail, bounceReason, 'postmark'],
      );
      assert.deepEqual(await timeline(id), ['queued', status]);
      const [attempt] = await attempts(id);
      assert.deepEqual([attempt?.outcome, attempt?.detail], ['refused', detail]);
    });

  for (const [name, outcome, attempt, failures, afterMs] of [
    ['busy', { kind: 'busy', detail: '503' }, 'again', 1, undefined],
    ['busy with a time', { kind: 'busy', detail: '429', afterMs: 17_000 }, 'again', 1, 17_000],
    ['account', { kind: 'account', detail: '401' }, 'account', 0, 60_000],
    ['unknown', { kind: 'unknown', detail: 'lost' }, 'unknown', 1, undefined],
  ] as const)
    test(`${name}: the email is tried again; it stays queued`, async () => {
      const { accept, deliverOne, provider, email, timeline, attempts } = make();
      const { id, version } = await accept();
      provider.acts.push(outcome);
      const { detail: reason } = outcome;
      const expected = { id, state: 'again', reason, failures, ...(afterMs !== undefined && { afterMs }) };
      assert.deepEqual(await deliverOne({ id, version }), expected);
      assert.deepEqual([(await email(id)).status, await timeline(id)], ['queued', ['queued']]);
      const [row] = await attempts(id);
      assert.deepEqual([row?.n, row?.outcome, row?.detail], [1, attempt, reason]);
    });

  test('a retry is another attempt with another call', async () => {
    const { accept, deliverOne, provider, attempts } = make();
    const member = await accept();
    provider.acts.push({ kind: 'busy', detail: '503' }, { kind: 'busy', detail: '429' });
    for (const state of ['again', 'again', 'ended']) assert.equal((await deliverOne(member)).state, state);
    const rows = await attempts(member.id);
    assert.deepEqual(
      rows.map(({ outcome }) => outcome),
      ['again', 'again', 'sent'],
    );
    assert.equal(new Set(rows.map(({ call }) => call)).size, 3);
    assert.equal(provider.asked, 0);
  });

  for (const [text, stored] of [
    [`\0no\0${'x'.repeat(100_000)}`, `no${'x'.repeat(1_998)}`],
    [`${'x'.repeat(1_999)}😀`, `${'x'.repeat(1_999)}\ufffd`],
  ] as const) {
    test(`a message of the provider is cut to 2,000 characters that Postgres takes: ${text.slice(-2)}`, async () => {
      const { accept, deliverOne, provider, email } = make();
      const member = await accept();
      provider.acts.push({ kind: 'bounced', reason: 'unknown', detail: text });
      await deliverOne(member);
      const { status, error } = await email(member.id);
      assert.deepEqual([status, error], ['bounced', stored]);
    });
  }

  test('no address is in a log or a retry reason; the customer sees it', async () => {
    const { accept, deliverOne, provider, lines, email } = make();
    const member = await accept({ to: ['secret.person@example.net'], subject: 'A secret subject' });
    const detail = '550 <secret.person@example.net> unknown';
    provider.acts.push({ kind: 'busy', detail }, { kind: 'rejected', detail });
    const first = await deliverOne(member);
    assert.ok(first.state === 'again');
    assert.equal(first.reason, '550 <s***@example.net> unknown');
    await deliverOne(member);
    assert.equal(lines.length, 2);
    assert.doesNotMatch(lines.join(''), /secret|A secret subject/);
    assert.equal((await email(member.id)).error, detail);
  });

  test('a refusal of our account is logged as an error', async () => {
    const { accept, deliverOne, provider, lines } = make();
    provider.acts.push({ kind: 'account', detail: 'wrong token' });
    await deliverOne(await accept());
    const logged = lines.map((line) => JSON.parse(line) as { level: number; msg: string });
    assert.deepEqual(
      logged.map(({ level, msg }) => [level, msg]),
      [
        [50, 'provider account paused'],
        [50, 'provider refused our account'],
      ],
    );
  });
});
