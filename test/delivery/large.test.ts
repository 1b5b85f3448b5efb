import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Member, MemberResult } from '../../src/delivery/contract.ts';
import { emailChannel } from '../../src/delivery/email/channel.ts';
import { giveUp } from '../../src/delivery/endings.ts';
import type { OutgoingEmail } from '../../src/domain/email/outgoing.ts';
import { organization } from '../store/mail.ts';
import { eventually } from '../support/eventually.ts';
import { organizationFixture } from '../support/organization.ts';
import { harness, ScriptedProvider, sent } from './harness.ts';

const MB = 1_048_576;
const CALL_BYTES = 16 * MB;

const { pool, orgId } = await organizationFixture(30);

const addresses = (name: string) => Array.from({ length: 50 }, (_, i) => `${name}-${i}@example.net`);

/** A marketing email to 150 recipients. */
const NEWSLETTER = { marketing: true, to: addresses('to'), cc: addresses('cc'), bcc: addresses('bcc') };

function bytesOf(emails: readonly OutgoingEmail[]): number {
  return emails.reduce((sum, { html, text }) => sum + Buffer.byteLength((html ?? '') + (text ?? '')), 0);
}

/** A provider that records the size of its calls. */
class MeasuringProvider extends ScriptedProvider {
  readonly sizes: { emails: number; bytes: number }[] = [];

  override async send(emails: readonly OutgoingEmail[], call: string) {
    this.sizes.push({ emails: emails.length, bytes: bytesOf(emails) });
    const outcomes = await super.send(emails, call);
    this.given.length = 0;
    return outcomes;
  }
}

describe('the copies of a large marketing email', () => {
  const body = (bytes: number) => `${'x'.repeat(bytes)} {{{unsubscribe_url}}}`;

  test('are sent in calls of at most 16 MB', async () => {
    const provider = new MeasuringProvider();
    const { accept, deliverOne, outcomes } = harness(pool, orgId, [provider]);
    const member = await accept({ ...NEWSLETTER, html: body(500_000), text: body(500_000) });
    assert.deepEqual(await deliverOne(member), sent(member.id));
    assert.equal(new Set(provider.tookIds).size, 150);
    assert.equal(provider.took.length, 150);
    for (const { emails, bytes } of provider.sizes) {
      assert.ok(emails <= 16 && bytes <= CALL_BYTES + emails * 200, `${emails} emails of ${bytes} bytes`);
    }
    const calls = provider.sizes.length;
    assert.deepEqual(await outcomes(member.id), Array<string>(calls).fill('sent'));
    assert.equal(new Set(provider.calls.map(({ call }) => call)).size, calls);
  });

  test('are sent in calls of the provider’s size', async () => {
    const provider = new MeasuringProvider();
    provider.callSize = 40;
    const { accept, deliverOne } = harness(pool, orgId, [provider]);
    const member = await accept({ ...NEWSLETTER, text: 'Hi.' });
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.deepEqual(
      provider.sizes.map(({ emails }) => emails),
      [40, 40, 40, 30],
    );
  });

  test('use up no attempts while some are taken', async () => {
    const provider = new MeasuringProvider();
    provider.callSize = 30;
    const { accept, deliverOne, email, attempts, deps } = harness(pool, orgId, [provider]);
    const member = await accept({ ...NEWSLETTER, text: 'Hi.' });
    const busy = { kind: 'busy', detail: '503' } as const;
    provider.acts.push(...Array.from({ length: 60 }, (_, i) => ({ kind: 'sent', messageId: `${i}` }) as const));
    provider.acts.push(...Array.from({ length: 60 }, () => busy));
    assert.equal((await deliverOne(member)).state, 'again');
    assert.equal((await deliverOne(member)).state, 'again');
    assert.equal((await attempts(member.id)).at(-1)?.n, 4);
    assert.deepEqual(
      await giveUp(deps, emailChannel(deps), [member.id], 3, member.id),
      new Map([[member.id, 'queued']]),
    );
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.equal((await email(member.id)).status, 'sent');
    assert.equal(provider.took.length, 90);
  });

  test('are given up after maximumAttempts failures since the last that were taken', async () => {
    const provider = new MeasuringProvider();
    provider.callSize = 100;
    const { accept, deliverOne, deps } = harness(pool, orgId, [provider]);
    const member = await accept({ ...NEWSLETTER, text: 'Hi.' });
    provider.acts.push(...Array.from({ length: 100 }, (_, i) => ({ kind: 'sent', messageId: `${i}` }) as const));
    provider.acts.push(...Array.from({ length: 100 }, () => ({ kind: 'busy', detail: '503' }) as const));
    await deliverOne(member);
    await deliverOne(member);
    assert.deepEqual(await giveUp(deps, emailChannel(deps), [member.id], 2, member.id), new Map([[member.id, 'sent']]));
    const { rows } = await pool.query<{ status: string; copies: number; error: string | null }>(
      `SELECT status, count(*)::int AS copies, min(error) AS error FROM email_recipients WHERE email_id = $1
       GROUP BY status ORDER BY status`,
      [member.id],
    );
    assert.deepEqual(rows, [
      { status: 'failed', copies: 50, error: '503 Given up after 2 attempts.' },
      { status: 'sent', copies: 100, error: null },
    ]);
  });
});

describe('emails with large bodies', () => {
  const html = 'x'.repeat(4 * MB);

  test('are read for one call at a time, after the small ones', async () => {
    const provider = new MeasuringProvider();
    const { acceptMany, deliver } = harness(pool, orgId, [provider]);
    const members = await acceptMany(8, (i) => (i % 2 === 0 ? { text: null, html } : {}));
    const results = await deliver(...members);
    assert.deepEqual(new Set(results.map((result) => 'status' in result && result.status)), new Set(['sent']));
    assert.deepEqual(
      provider.sizes.map(({ emails }) => emails),
      [4, 4],
    );
  });

  test('use bounded memory at a provider that hangs; others are postponed without an attempt', async () => {
    const provider = new MeasuringProvider();
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => (answer = resolve));
    const { acceptMany, deliver, deliverOne, accept, attempts, deps } = harness(pool, orgId, [provider]);
    const members = await acceptMany(20, () => ({ text: null, html }));
    provider.acts.push(
      ...members.map(() => async (email: { id: string }, call: string) => {
        await answered;
        return provider.take(email, call);
      }),
    );
    const postponed: MemberResult[] = [];
    const deliveries = members.map(async (member) => {
      const result = await deliverOne(member);
      if (result.state === 'again') postponed.push(result);
    });
    // One organization may have 48 MB in memory.
    await eventually('8 of 20 emails are postponed', () => postponed.length === 8);
    await eventually('12 of them are at the provider', () => provider.calls.length === 12);
    for (const result of postponed) {
      assert.ok(result.state === 'again' && result.postponed);
      assert.equal(result.reason, 'This worker has no memory for it now.');
      assert.deepEqual(await attempts(result.id), []);
    }
    provider.acts.length = 0;
    assert.equal((await deliverOne(await accept())).state, 'ended', 'a small email');
    const second = await organization(pool, 'second.example');
    const others = harness(pool, second, [provider], { largeEmails: deps.largeEmails });
    const sender = { from: 'hello@second.example', from_domain: 'second.example' };
    const [theirs] = await others.acceptMany(1, () => ({ ...sender, text: null, html }));
    assert.equal((await others.deliverOne(theirs as Member)).state, 'ended', 'a large email of another organization');

    answer();
    await Promise.all(deliveries);
    const results = await deliver(...postponed.map(({ id }) => ({ id, version: 0 })));
    assert.ok(results.every(({ state }) => state === 'ended'));
    assert.equal(provider.took.length, 22);
  });
});
