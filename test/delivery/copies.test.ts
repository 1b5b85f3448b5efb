import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { emailChannel } from '../../src/delivery/email/channel.ts';
import { giveUp } from '../../src/delivery/endings.ts';
import { newId } from '../../src/lib/ids.ts';
import { projectFeedback } from '../../src/projection/feedback.ts';
import { eraseContents } from '../../src/store/emails/content-erasure.ts';
import { findTrackedEmails } from '../../src/store/emails/tracked.ts';
import { addSuppressions } from '../../src/store/suppressions/suppressions.ts';
import type { SuppressionOrigin } from '../../src/domain/email/suppression.ts';
import { organizationFixture } from '../support/organization.ts';
import { inMs, organization } from '../store/mail.ts';
import { waitForBlocked } from '../support/locks.ts';
import { harnessWithProvider, sent } from './harness.ts';

const { pool, orgId } = await organizationFixture(20);

let count = 0;
/** A new address. */
const address = (name: string) => `${name}-${++count}@example.net`;

async function suppress(email: string, origin: SuppressionOrigin = 'manual', org_id = orgId): Promise<void> {
  await addSuppressions(pool, [{ id: newId('sup'), org_id, email, origin }]);
}

/** The status of each recipient of an email. */
async function recipientsOf(id: string): Promise<Record<string, string>> {
  const { rows } = await pool.query<{ recipient: string; status: string }>(
    `SELECT recipient, status FROM email_recipients WHERE email_id = $1`,
    [id],
  );
  return Object.fromEntries(rows.map(({ recipient, status }) => [recipient, status]));
}

const make = () => harnessWithProvider(pool, orgId);

describe('decisions 3.3: recipients on the suppression list', () => {
  test('are skipped; the other recipients get the email', async () => {
    const { provider, accept, deliverOne, email } = make();
    const [a, b, c, d] = ['A', 'b', 'c', 'd'].map(address) as [string, string, string, string];
    await suppress(a);
    await suppress(c.toUpperCase());
    await suppress(b, 'unsubscribe');
    const member = await accept({ to: [`Ann <${a}>`, b], cc: [c], bcc: [d] });
    assert.equal((await deliverOne(member)).state, 'ended');
    const [given] = provider.given;
    assert.deepEqual([given?.to.map(({ address: to }) => to), given?.cc, given?.bcc.length], [[b], [], 1]);
    assert.equal((await email(member.id)).status, 'sent');
    assert.deepEqual(await recipientsOf(member.id), { [a.toLowerCase()]: 'suppressed', [c]: 'suppressed' });
  });

  test('when all of to are suppressed, nothing is sent, not even to cc', async () => {
    const { provider, accept, deliverOne, email, timeline, attempts } = make();
    const [a, b, c] = ['a', 'b', 'c'].map(address) as [string, string, string];
    await suppress(a);
    await suppress(b, 'bounce');
    const member = await accept({ to: [a, b], cc: [c] });
    assert.deepEqual(await deliverOne(member), { id: member.id, state: 'ended', status: 'suppressed' });
    assert.deepEqual(provider.calls, []);
    assert.equal((await email(member.id)).status, 'suppressed');
    assert.deepEqual(await timeline(member.id), ['queued', 'suppressed']);
    assert.deepEqual(await attempts(member.id), []);
  });

  test('of another organization are not skipped, and unsubscribed ones only in marketing email', async () => {
    const { accept, deliverOne } = make();
    const [a, b] = ['a', 'b'].map(address) as [string, string];
    await suppress(a, 'manual', await organization(pool, 'other.example'));
    await suppress(b, 'unsubscribe');
    for (const [to, marketing, status] of [
      [a, false, 'sent'],
      [b, false, 'sent'],
      [a, true, 'sent'],
      [b, true, 'suppressed'],
    ] as const) {
      const result = await deliverOne(await accept({ to: [to], marketing }));
      assert.equal(result.state === 'ended' && result.status, status, `${to} ${marketing}`);
    }
  });

  test('States rule 2: of a scheduled email are skipped when it is sent, not when it is created', async () => {
    const { accept, deliverOne, email } = make();
    const [early, late] = ['early', 'late'].map(address) as [string, string];
    const scheduled_at = inMs(60_000);
    const first = await accept({ to: [early], scheduled_at });
    const second = await accept({ to: [late], scheduled_at });
    await suppress(early);
    await suppress(late);
    assert.equal((await email(first.id)).status, 'scheduled');
    await pool.query('DELETE FROM suppressions WHERE email = $1', [late]);
    await pool.query(`UPDATE emails SET scheduled_at = now() - interval '1 second' WHERE id = ANY ($1)`, [
      [first.id, second.id],
    ]);
    const results = [await deliverOne(first), await deliverOne(second)];
    assert.deepEqual(
      results.map((result) => result.state === 'ended' && result.status),
      ['suppressed', 'sent'],
    );
  });

  test('are skipped in a group as well', async () => {
    const { provider, acceptMany, deliver } = make();
    const to = Array.from({ length: 6 }, () => address('g'));
    await suppress(to[1] as string);
    await suppress(to[4] as string, 'complaint');
    const members = await acceptMany(6, (i) => ({ to: [to[i] as string] }));
    const results = await deliver(...members);
    const status = new Map(results.map((result) => [result.id, result.state === 'ended' && result.status]));
    assert.deepEqual(
      members.map(({ id }) => status.get(id)),
      ['sent', 'suppressed', 'sent', 'sent', 'suppressed', 'sent'],
    );
    assert.deepEqual([provider.calls.length, provider.took.length], [1, 4]);
  });
});

describe('decisions 3.7: a marketing email', () => {
  const body = { marketing: true, text: 'Bye: {{{unsubscribe_url}}}', html: '<a href="{{{unsubscribe_url}}}">bye</a>' };

  test('to one recipient has its link and headers', async () => {
    const { provider, accept, deliverOne } = make();
    const { id } = await accept({
      ...body,
      to: [address('one')],
      headers: { 'list-unsubscribe': '<mailto:x@y.example>' },
    });
    await deliverOne({ id, version: 0 });
    const [given] = provider.given;
    assert.equal(given?.text, `Bye: https://mail.example/unsubscribe/${id}.0`);
    assert.deepEqual(given.headers, [
      ['List-Unsubscribe', `<https://mail.example/unsubscribe/${id}.0>`],
      ['List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'],
    ]);
    assert.deepEqual(provider.tookIds, [id]);
    assert.deepEqual(await recipientsOf(id), {});
  });

  test('to several is one copy for each, with its own address, link and Message-ID', async () => {
    const { provider, accept, deliverOne, email, timeline } = make();
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(address) as [string, string, string, string];
    await suppress(b, 'unsubscribe');
    const { id } = await accept({ ...body, to: [a, b], cc: [c, a.toUpperCase()], bcc: [d] });
    assert.deepEqual(await deliverOne({ id, version: 0 }), sent(id));
    assert.deepEqual(
      provider.given.map(({ to, cc, bcc, text, messageId }) => [
        to.map(({ address: to }) => to),
        cc,
        bcc,
        text,
        messageId,
      ]),
      [
        [a, 0],
        [c, 2],
        [d, 3],
      ].map(([address, n]) => [
        [address],
        [],
        [],
        `Bye: https://mail.example/unsubscribe/${id}.${n}`,
        `<${id}.${n}@${provider.given[0]?.from.domain}>`,
      ]),
    );
    assert.equal(provider.calls.length, 1);
    assert.deepEqual(await recipientsOf(id), { [a]: 'sent', [b]: 'suppressed', [c]: 'sent', [d]: 'sent' });
    assert.deepEqual([(await email(id)).status, await timeline(id)], ['sent', ['queued', 'sent']]);
  });

  test('sends again only the copies that were not taken, also after a report about another', async () => {
    const { provider, accept, deliverOne, email, timeline } = make();
    const [a, b, c] = ['a', 'b', 'c'].map(address) as [string, string, string];
    const { id } = await accept({ ...body, to: [a, b, c] });
    provider.acts.push((taken, call) => provider.take(taken, call), { kind: 'busy', detail: '503' });
    const first = await deliverOne({ id, version: 0 });
    assert.deepEqual([first.state, (await email(id)).status], ['again', 'queued']);
    assert.deepEqual(await recipientsOf(id), { [a]: 'sent', [b]: 'queued', [c]: 'sent' });
    await projectFeedback(pool, [{ emailId: id, change: 'delivered', recipient: a, dedupeKey: 'd1' }]);
    assert.equal((await email(id)).status, 'delivered');
    assert.deepEqual(await deliverOne({ id, version: 0 }), sent(id));
    assert.deepEqual(provider.tookIds, [`${id}.0`, `${id}.2`, `${id}.1`]);
    assert.deepEqual(await recipientsOf(id), { [a]: 'delivered', [b]: 'sent', [c]: 'sent' });
    assert.deepEqual([(await email(id)).status, await timeline(id)], ['delivered', ['queued', 'sent', 'delivered']]);
    // And nothing is left.
    assert.equal((await deliverOne({ id, version: 0 })).state, 'ended');
    assert.equal(provider.took.length, 3);
  });

  test('is locked before its copies, as by a report, so that neither fails', async (t) => {
    const { provider, accept, deliverOne } = make();
    const [a, b] = ['a', 'b'].map(address) as [string, string];
    const { id } = await accept({ ...body, to: [a, b] });
    const client = await pool.connect();
    t.after(() => client.release());
    const lockEmail = async (taken: { id: string; copy: number | null }, call: string) => {
      await client.query('BEGIN');
      await client.query('SELECT FROM emails WHERE id = $1 FOR UPDATE', [id]);
      return provider.take(taken, call);
    };
    provider.acts.push(lockEmail);
    const delivery = deliverOne({ id, version: 0 });
    await waitForBlocked(pool);
    await client.query(`SET LOCAL lock_timeout = '100ms'`);
    await client.query(`UPDATE email_recipients SET error = 'x' WHERE email_id = $1`, [id]);
    await client.query('COMMIT');
    assert.deepEqual(await delivery, sent(id));
  });

  test('with an ambiguous call sends only the copies that the provider does not have', async () => {
    const { provider, accept, deliverOne, deps } = make();
    const { id } = await accept({ ...body, to: [address('a'), address('b')] });
    provider.acts.push((taken, call) => (provider.take(taken, call), { kind: 'unknown', detail: 'no answer' }), {
      kind: 'unknown',
      detail: 'no answer',
    });
    assert.equal((await deliverOne({ id, version: 0 })).state, 'again');
    // The first "not found" is not enough, the second confirms it.
    assert.equal((await deliverOne({ id, version: 0 })).state, 'again');
    await pool.query(`UPDATE attempts SET denied_at = denied_at - $2 * interval '1 ms' WHERE message_id = $1`, [
      id,
      deps.confirmNotFoundAfterMs,
    ]);
    assert.deepEqual(await deliverOne({ id, version: 0 }), sent(id));
    assert.deepEqual(provider.tookIds, [`${id}.0`, `${id}.1`]);
  });

  test('with an ambiguous call is sent when the provider has all copies', async () => {
    const { provider, accept, deliverOne, email } = make();
    const { id } = await accept({ ...body, to: [address('a'), address('b')] });
    const lost = (taken: { id: string; copy: number | null }, call: string) => {
      provider.take(taken, call);
      return { kind: 'unknown', detail: 'no answer' } as const;
    };
    provider.acts.push(lost, lost);
    assert.equal((await deliverOne({ id, version: 0 })).state, 'again');
    assert.equal((await deliverOne({ id, version: 0 })).state, 'ended');
    assert.deepEqual([(await email(id)).status, provider.took.length], ['sent', 2]);
  });

  test('that is given up has the status sent if a copy was accepted; the other copies have failed', async () => {
    const { deps, provider, accept, deliverOne, email } = make();
    const [a, b] = ['a', 'b'].map(address) as [string, string];
    const { id } = await accept({ ...body, to: [a, b] });
    const busy = { kind: 'busy', detail: '503' } as const;
    provider.acts.push(busy, (taken, call) => provider.take(taken, call), busy);
    const again = { id, state: 'again', reason: '503' };
    assert.deepEqual(await deliverOne({ id, version: 0 }), { ...again, failures: 0 }, 'b was taken');
    assert.deepEqual(await giveUp(deps, emailChannel(deps), [id], 1, id), new Map([[id, 'queued']]), 'b was taken');
    assert.deepEqual(await deliverOne({ id, version: 0 }), { ...again, failures: 1 });
    assert.deepEqual(await giveUp(deps, emailChannel(deps), [id], 2, id), new Map([[id, 'queued']]));
    assert.deepEqual(await giveUp(deps, emailChannel(deps), [id], 1, id), new Map([[id, 'sent']]));
    assert.deepEqual([(await email(id)).status, await recipientsOf(id)], ['sent', { [a]: 'failed', [b]: 'sent' }]);
  });

  test('has no copies left if all of to are suppressed while the provider is paused', async () => {
    await pool.query(
      `INSERT INTO provider_pauses (provider, sender, reason, next_probe_at)
       VALUES ('postmark', '', 'The token is wrong.', now() + interval '1 hour')`,
    );
    const waiting = make();
    const [a, b, c] = ['a', 'b', 'c'].map(address) as [string, string, string];
    const { id } = await waiting.accept({ ...body, to: [a, b], cc: [c] });
    assert.equal((await waiting.deliverOne({ id, version: 0 })).state, 'again');
    assert.deepEqual(await recipientsOf(id), { [a]: 'queued', [b]: 'queued', [c]: 'queued' });
    await pool.query('DELETE FROM provider_pauses');
    await suppress(a, 'unsubscribe');
    await suppress(b, 'unsubscribe');
    const { provider, deliverOne } = make();
    assert.deepEqual(await deliverOne({ id, version: 0 }), { id, state: 'ended', status: 'suppressed' });
    assert.deepEqual(await recipientsOf(id), { [a]: 'suppressed', [b]: 'suppressed' });
    assert.deepEqual(await eraseContents(pool, orgId, [id]), [{ id, is_open: false }]);
    assert.deepEqual(provider.calls, []);
  });

  test('sends to every recipient while one is refused for now', async () => {
    const { provider, accept, deliverOne } = make();
    provider.callSize = 1;
    const [a, b, c] = ['a', 'b', 'c'].map(address) as [string, string, string];
    const { id } = await accept({ ...body, to: [a, b, c] });
    const refuseA = (taken: { id: string; copy: number | null }, call: string) =>
      taken.copy === 0 ? ({ kind: 'busy', detail: '450' } as const) : provider.take(taken, call);
    provider.acts.push(...Array<typeof refuseA>(4).fill(refuseA));
    for (let round = 0; round < 2; round++) assert.equal((await deliverOne({ id, version: 0 })).state, 'again');
    assert.deepEqual(await recipientsOf(id), { [a]: 'queued', [b]: 'sent', [c]: 'sent' });
    assert.deepEqual(await deliverOne({ id, version: 0 }), sent(id));
  });

  test('repeats each copy as often as allowed, however often others were repeated', async () => {
    const { provider, accept, deliverOne, outcomes } = harnessWithProvider(pool, orgId, {}, 'smtp');
    provider.callSize = 1;
    const [a, b] = ['a', 'b'].map(address) as [string, string];
    const { id } = await accept({ ...body, to: [a, b] });
    const unknown = { kind: 'unknown', detail: 'no answer' } as const;
    provider.acts.push(unknown, unknown);
    for (let round = 0; round < 2; round++) assert.equal((await deliverOne({ id, version: 0 })).state, 'again');
    assert.deepEqual(await deliverOne({ id, version: 0 }), { ...sent(id), provider: 'smtp' });
    assert.deepEqual(await recipientsOf(id), { [a]: 'sent', [b]: 'sent' });
    assert.deepEqual(await outcomes(id), ['risked', 'risked', 'sent', 'sent']);
  });

  test('fails a copy that was repeated as often as allowed, and no other with it', async () => {
    const { provider, accept, deliverOne, outcomes } = harnessWithProvider(pool, orgId, {}, 'smtp');
    provider.callSize = 2;
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(address) as [string, string, string, string];
    const { id } = await accept({ ...body, to: [a, b, c, d] });
    const unknown = { kind: 'unknown', detail: 'no answer' } as const;
    const take = (taken: { id: string; copy: number | null }, call: string) => provider.take(taken, call);
    provider.acts.push(unknown, take, take, { kind: 'busy', detail: '450' }, unknown, unknown);
    for (let round = 0; round < 4; round++) assert.equal((await deliverOne({ id, version: 0 })).state, 'again');
    assert.deepEqual(await deliverOne({ id, version: 0 }), { ...sent(id), provider: 'smtp' });
    assert.deepEqual(await recipientsOf(id), { [a]: 'failed', [b]: 'sent', [c]: 'sent', [d]: 'sent' });
    assert.deepEqual(await outcomes(id), ['risked', 'sent', 'given_up', 'risked', 'sent']);
  });

  test('with an ambiguous call that is not repeated fails only the copies of that call', async () => {
    const { provider, accept, deliverOne, outcomes } = harnessWithProvider(
      pool,
      orgId,
      { ambiguousSend: 'fail' },
      'smtp',
    );
    provider.callSize = 1;
    const [a, b, c] = ['a', 'b', 'c'].map(address) as [string, string, string];
    const { id } = await accept({ ...body, to: [a, b, c] });
    provider.acts.push({ kind: 'unknown', detail: 'no answer' });
    assert.equal((await deliverOne({ id, version: 0 })).state, 'again');
    assert.deepEqual(await deliverOne({ id, version: 0 }), { ...sent(id), provider: 'smtp' });
    assert.deepEqual(await recipientsOf(id), { [a]: 'failed', [b]: 'sent', [c]: 'sent' });
    assert.deepEqual(await outcomes(id), ['given_up', 'sent', 'sent']);
    const [tracked] = await findTrackedEmails(pool, [id]);
    assert.deepEqual(tracked?.copies, { [a]: true, [b]: true, [c]: true }, 'a may have been accepted');
  });

  test('that is refused for all recipients has that status; a bounce suppresses its recipient', async () => {
    const { provider, accept, deliverOne, email, timeline } = make();
    const [a, b] = ['a', 'b'].map(address) as [string, string];
    const { id } = await accept({ ...body, to: [a, b] });
    provider.acts.push(
      { kind: 'bounced', reason: 'mailbox_not_found', detail: '550 5.1.1 no such user' },
      { kind: 'rejected', detail: 'malformed' },
    );
    assert.deepEqual(await deliverOne({ id, version: 0 }), {
      id,
      state: 'ended',
      status: 'bounced',
      provider: 'postmark',
    });
    assert.deepEqual(await recipientsOf(id), { [a]: 'bounced', [b]: 'rejected' });
    assert.deepEqual([(await email(id)).status, await timeline(id)], ['bounced', ['queued', 'bounced']]);
    const next = await deliverOne(await accept({ ...body, to: [a] }));
    assert.equal(next.state === 'ended' && next.status, 'suppressed');
  });
});

describe('decisions 3.5: a provider that refuses some recipients', () => {
  test('sends it to the others, and each refusal is a bounce', async () => {
    const { provider, accept, deliverOne, email, timeline } = make();
    const [a, b, c] = ['a', 'b', 'c'].map(address) as [string, string, string];
    const member = await accept({ to: [a, b], cc: [c] });
    const refused = [{ recipient: b.toUpperCase(), reason: 'mailbox_full' as const, detail: '552 5.2.2 full' }];
    provider.acts.push({ kind: 'sent', messageId: 'm', refused });
    await deliverOne(member);
    const { status, error, bounce_reason } = await email(member.id);
    assert.deepEqual([status, error, bounce_reason], ['bounced', '552 5.2.2 full', 'mailbox_full']);
    assert.deepEqual(await timeline(member.id), ['queued', 'sent', 'bounced']);
    assert.deepEqual(await recipientsOf(member.id), { [b]: 'bounced' });
  });
});
