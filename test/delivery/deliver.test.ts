import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import type { EmailDeps } from '../../src/delivery/email/contract.ts';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { force, inMs } from '../store/mail.ts';
import { organizationFixture } from '../support/organization.ts';
import { officeWithProvider } from './office.ts';

const { pool, orgId } = await organizationFixture(10);
// All tests share one account.
afterEach(async () => {
  await pool.query('DELETE FROM provider_pauses');
});

const make = (settings?: Partial<EmailDeps>) => officeWithProvider(pool, orgId, settings);

describe('what a provider says of an email', () => {
  const cases: [SendOutcome, object, string, string][] = [
    [
      { kind: 'bounced', reason: 'provider_suppressed', detail: 'inactive' },
      { status: 'bounced', error: 'inactive', bounce_reason: 'provider_suppressed' },
      'bounced',
      'refused',
    ],
    [
      { kind: 'rejected', detail: 'no such sender' },
      { status: 'rejected', error: 'no such sender', bounce_reason: null },
      'rejected',
      'refused',
    ],
  ];
  for (const [outcome, row, event, attempt] of cases)
    test(`${outcome.kind} ends it so, with its words`, async () => {
      const { accept, deliverOne, provider, email, timeline, attempts } = make();
      const member = await accept();
      provider.acts.push(outcome);
      const result = await deliverOne(member);
      assert.deepEqual(result, { id: member.id, state: 'ended', status: event, provider: 'postmark' });
      const { status, error, bounce_reason, provider: who } = await email(member.id);
      assert.deepEqual({ status, error, bounce_reason }, row);
      assert.equal(who, 'postmark');
      assert.deepEqual(await timeline(member.id), ['queued', event]);
      assert.deepEqual(
        (await attempts(member.id)).map(({ outcome: how, detail }) => [how, detail]),
        [[attempt, (outcome as { detail: string }).detail]],
      );
    });

  const again: [string, SendOutcome, string, number | undefined][] = [
    ['busy: the retry policy decides', { kind: 'busy', detail: '503' }, 'again', undefined],
    ['busy with a time: that time', { kind: 'busy', detail: '429', after: 17_000 }, 'again', 17_000],
    ['account: in a minute, when it is paused', { kind: 'account', detail: '401' }, 'account', 60_000],
    ['unknown: it is asked next, by policy', { kind: 'unknown', detail: 'lost' }, 'unknown', undefined],
  ];
  for (const [name, outcome, attempt, wait] of again)
    test(`${name}; it stays queued`, async () => {
      const { accept, deliverOne, provider, email, timeline, attempts } = make();
      const member = await accept();
      provider.acts.push(outcome);
      const result = await deliverOne(member);
      const reason = (outcome as { detail: string }).detail;
      assert.deepEqual(result, {
        id: member.id,
        state: 'again',
        reason,
        ...(wait !== undefined && { afterMs: wait }),
      });
      assert.deepEqual([(await email(member.id)).status, await timeline(member.id)], ['queued', ['queued']]);
      assert.deepEqual(
        (await attempts(member.id)).map(({ n, outcome: how, detail }) => [n, how, detail]),
        [[1, attempt, reason]],
      );
    });

  test('is tried again as another attempt with another call', async () => {
    const { accept, deliverOne, provider, attempts } = make();
    const member = await accept();
    provider.acts.push({ kind: 'busy', detail: '503' }, { kind: 'busy', detail: '429' });
    for (const state of ['again', 'again', 'ended']) assert.equal((await deliverOne(member)).state, state);
    const rows = await attempts(member.id);
    assert.deepEqual(
      rows.map(({ n, outcome }) => [n, outcome]),
      [
        [1, 'again'],
        [2, 'again'],
        [3, 'sent'],
      ],
    );
    assert.equal(new Set(rows.map(({ call }) => call)).size, 3);
    assert.equal(provider.asked, 0);
  });

  test('may be anything: what Postgres cannot hold is left out, and no page of it is kept', async () => {
    const { accept, deliverOne, provider, email } = make();
    const member = await accept();
    provider.acts.push({ kind: 'rejected', detail: `\0no\0${'x'.repeat(100_000)}` });
    await deliverOne(member);
    const { status, error } = await email(member.id);
    assert.equal(status, 'rejected');
    assert.match(error ?? '', /^nox{1998}$/);
  });

  test('shows no address in a log or in a reason, but to the customer', async () => {
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

  test('about our account raises an alarm', async () => {
    const { accept, deliverOne, provider, lines } = make();
    provider.acts.push({ kind: 'account', detail: 'wrong token' });
    await deliverOne(await accept());
    const told = lines.map((line) => JSON.parse(line) as { level: number; msg: string });
    assert.deepEqual(
      told.map(({ level, msg }) => [level, msg]),
      [
        [50, 'provider account paused'],
        [50, 'provider refused our account'],
      ],
    );
  });
});

describe('a group', () => {
  test('is sent in one call, each by its own outcome', async () => {
    const { acceptMany, deliver, provider, email, timeline, attempts } = make();
    const members = await acceptMany(8);
    const [sent, bounced, rejected, busy, account, unknown, canceled, twice] = members as [
      (typeof members)[0],
      ...typeof members,
    ];
    assert.ok(bounced && rejected && busy && account && unknown && canceled && twice);
    await force(pool, canceled.id, 'canceled');
    const script: Record<string, SendOutcome> = {
      [bounced.id]: { kind: 'bounced', reason: 'provider_suppressed', detail: 'b' },
      [rejected.id]: { kind: 'rejected', detail: 'r' },
      [busy.id]: { kind: 'busy', detail: 'u', after: 5_000 },
      [account.id]: { kind: 'account', detail: 'a' },
      [unknown.id]: { kind: 'unknown', detail: '?' },
    };
    provider.acts.push(
      ...members.map(() => (mail: { id: string }, call: string) => script[mail.id] ?? provider.take(mail, call)),
    );
    const results = new Map((await deliver(...members)).map((result) => [result.id, result]));
    assert.deepEqual(
      members.map(({ id }) => results.get(id)),
      [
        { id: sent.id, state: 'ended', status: 'sent', provider: 'postmark' },
        { id: bounced.id, state: 'ended', status: 'bounced', provider: 'postmark' },
        { id: rejected.id, state: 'ended', status: 'rejected', provider: 'postmark' },
        { id: busy.id, state: 'again', reason: 'u', afterMs: 5_000 },
        { id: account.id, state: 'again', reason: 'a', afterMs: 60_000 },
        { id: unknown.id, state: 'again', reason: '?' },
        { id: canceled.id, state: 'ended', status: 'canceled' },
        { id: twice.id, state: 'ended', status: 'sent', provider: 'postmark' },
      ],
    );
    assert.equal(provider.calls.length, 1);
    assert.equal(provider.calls[0]?.ids.length, 7);
    const statuses = await Promise.all(members.map(async ({ id }) => (await email(id)).status));
    assert.deepEqual(statuses, ['sent', 'bounced', 'rejected', 'queued', 'queued', 'queued', 'canceled', 'sent']);
    const outcomes = await Promise.all(members.map(async ({ id }) => (await attempts(id))[0]?.outcome));
    assert.deepEqual(outcomes, ['sent', 'refused', 'refused', 'again', 'account', 'unknown', undefined, 'sent']);
    assert.deepEqual(await timeline(bounced.id), ['queued', 'bounced']);
  });

  test('of 500 goes in one call, and everyone gets a result', async () => {
    const { acceptMany, deliver, provider } = make();
    const members = await acceptMany(500, (i) => (i % 2 ? { scheduled_at: inMs(60_000) } : {}));
    await pool.query(`UPDATE emails SET scheduled_at = now() - interval '1 second' WHERE scheduled_at IS NOT NULL`);
    const results = await deliver(...members);
    assert.deepEqual(new Set(results.map(({ id }) => id)), new Set(members.map(({ id }) => id)));
    assert.equal(results.length, 500);
    assert.ok(results.every((result) => result.state === 'ended' && result.status === 'sent'));
    assert.deepEqual([provider.calls.length, provider.took.length], [1, 500]);
  });

  test('of nobody comes to nothing', async () => {
    const { deliver, provider } = make();
    assert.deepEqual(await deliver(), []);
    assert.deepEqual(provider.calls, []);
  });
});
