import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { giveUp } from '../../src/delivery/email/endings.ts';
import { newId } from '../../src/domain/ids.ts';
import { projectFeedback } from '../../src/projection/feedback.ts';
import { addSuppressions } from '../../src/store/suppressions/suppressions.ts';
import type { SuppressionOrigin } from '../../src/domain/email/suppression.ts';
import { useDatabase } from '../support/database.ts';
import { organization } from '../store/mail.ts';
import { office, ScriptedProvider } from './office.ts';

const { pool } = await useDatabase(20);
const orgId = await organization(pool);

/** Addresses that no other test uses. */
const someone = (() => {
  let count = 0;
  return (name: string) => `${name}-${++count}@example.net`;
})();

async function suppress(email: string, origin: SuppressionOrigin = 'manual', org_id = orgId): Promise<void> {
  await addSuppressions(pool, [
    { id: newId('sup', Date.now()), event_id: newId('evt', Date.now()), org_id, email, origin },
  ]);
}

/** What is known of an email's recipients. */
async function recipientsOf(id: string): Promise<Record<string, string>> {
  const { rows } = await pool.query<{ recipient: string; status: string }>(
    `SELECT recipient, status FROM email_recipients WHERE email_id = $1`,
    [id],
  );
  return Object.fromEntries(rows.map(({ recipient, status }) => [recipient, status]));
}

function desk() {
  const provider = new ScriptedProvider();
  return { provider, ...office(pool, orgId, [provider]) };
}

describe('decisions 3.3: recipients on the suppression list', () => {
  test('get nothing; the others get it as it is', async () => {
    const { provider, accept, deliverOne, email } = desk();
    const [a, b, c, d] = ['A', 'b', 'c', 'd'].map(someone) as [string, string, string, string];
    await suppress(a);
    await suppress(c.toUpperCase());
    await suppress(b, 'unsubscribe');
    const member = await accept({ to: [`Ann <${a}>`, b], cc: [c], bcc: [d] });
    assert.equal((await deliverOne(member)).state, 'ended');
    const [given] = provider.given;
    assert.deepEqual([given?.to.map(({ address }) => address), given?.cc, given?.bcc.length], [[b], [], 1]);
    assert.equal((await email(member.id)).status, 'sent');
    assert.deepEqual(await recipientsOf(member.id), { [a.toLowerCase()]: 'suppressed', [c]: 'suppressed' });
  });

  test('when every to address is there, nothing goes out, to cc neither', async () => {
    const { provider, accept, deliverOne, email, timeline, attempts } = desk();
    const [a, b, c] = ['a', 'b', 'c'].map(someone) as [string, string, string];
    await suppress(a);
    await suppress(b, 'bounce');
    const member = await accept({ to: [a, b], cc: [c] });
    assert.deepEqual(await deliverOne(member), { id: member.id, state: 'ended', status: 'suppressed' });
    assert.deepEqual(provider.calls, []);
    assert.equal((await email(member.id)).status, 'suppressed');
    assert.deepEqual(await timeline(member.id), ['queued', 'suppressed']);
    assert.deepEqual(await attempts(member.id), []);
  });

  test('of another organization does not count, nor does who unsubscribed, but for marketing email', async () => {
    const { accept, deliverOne } = desk();
    const [a, b] = ['a', 'b'].map(someone) as [string, string];
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
    const { accept, deliverOne, email } = desk();
    const [early, late] = ['early', 'late'].map(someone) as [string, string];
    const scheduled_at = new Date(Date.now() + 60_000).toISOString();
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

  test('are in a group what they are alone', async () => {
    const { provider, acceptMany, deliver } = desk();
    const to = Array.from({ length: 6 }, () => someone('g'));
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

  test('to one goes out with its link and headers', async () => {
    const { provider, accept, deliverOne } = desk();
    const { id } = await accept({
      ...body,
      to: [someone('one')],
      headers: { 'list-unsubscribe': '<mailto:x@y.example>' },
    });
    await deliverOne({ id, version: 0 });
    const [given] = provider.given;
    assert.equal(given?.text, `Bye: https://mail.example/unsubscribe/${id}.0`);
    assert.deepEqual(given.headers, [
      ['List-Unsubscribe', `<https://mail.example/unsubscribe/${id}.0>`],
      ['List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'],
    ]);
    assert.deepEqual(
      provider.took.map(({ id: took }) => took),
      [id],
    );
    assert.deepEqual(await recipientsOf(id), {});
  });

  test('to several is one copy each, addressed to nobody else, with a link and a Message-ID of its own', async () => {
    const { provider, accept, deliverOne, email, timeline } = desk();
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(someone) as [string, string, string, string];
    await suppress(b, 'unsubscribe');
    const { id } = await accept({ ...body, to: [a, b], cc: [c, a.toUpperCase()], bcc: [d] });
    assert.deepEqual(await deliverOne({ id, version: 0 }), {
      id,
      state: 'ended',
      status: 'sent',
      provider: 'postmark',
    });
    assert.deepEqual(
      provider.given.map(({ to, cc, bcc, text, messageId }) => [
        to.map(({ address }) => address),
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
    const { provider, accept, deliverOne, email, timeline } = desk();
    const [a, b, c] = ['a', 'b', 'c'].map(someone) as [string, string, string];
    const { id } = await accept({ ...body, to: [a, b, c] });
    provider.acts.push((taken, call) => provider.take(taken, call), { kind: 'busy', detail: '503' });
    const first = await deliverOne({ id, version: 0 });
    assert.deepEqual([first.state, (await email(id)).status], ['again', 'queued']);
    assert.deepEqual(await recipientsOf(id), { [a]: 'sent', [b]: 'queued', [c]: 'sent' });
    await projectFeedback(pool, [{ emailId: id, change: 'delivered', recipient: a, dedupeKey: 'd1' }]);
    assert.equal((await email(id)).status, 'delivered');
    assert.deepEqual(await deliverOne({ id, version: 0 }), {
      id,
      state: 'ended',
      status: 'sent',
      provider: 'postmark',
    });
    assert.deepEqual(
      provider.took.map((took) => took.id),
      [`${id}.0`, `${id}.2`, `${id}.1`],
    );
    assert.deepEqual(await recipientsOf(id), { [a]: 'delivered', [b]: 'sent', [c]: 'sent' });
    assert.deepEqual([(await email(id)).status, await timeline(id)], ['delivered', ['queued', 'sent', 'delivered']]);
    // And nothing is left.
    assert.equal((await deliverOne({ id, version: 0 })).state, 'ended');
    assert.equal(provider.took.length, 3);
  });

  test('whose call nobody saw the end of sends only what the provider does not have', async () => {
    const { provider, accept, deliverOne, deps } = desk();
    const { id } = await accept({ ...body, to: [someone('a'), someone('b')] });
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
    assert.deepEqual(await deliverOne({ id, version: 0 }), {
      id,
      state: 'ended',
      status: 'sent',
      provider: 'postmark',
    });
    assert.deepEqual(
      provider.took.map((took) => took.id),
      [`${id}.0`, `${id}.1`],
    );
  });

  test('all of whose copies the provider has after all is sent', async () => {
    const { provider, accept, deliverOne, email } = desk();
    const { id } = await accept({ ...body, to: [someone('a'), someone('b')] });
    const lost = (taken: { id: string; copy: number | null }, call: string) => {
      provider.take(taken, call);
      return { kind: 'unknown', detail: 'no answer' } as const;
    };
    provider.acts.push(lost, lost);
    assert.equal((await deliverOne({ id, version: 0 })).state, 'again');
    assert.equal((await deliverOne({ id, version: 0 })).state, 'ended');
    assert.deepEqual([(await email(id)).status, provider.took.length], ['sent', 2]);
  });

  test('given up in the middle is sent, and those that are left have failed', async () => {
    const { deps, provider, accept, deliverOne, email } = desk();
    const [a, b] = ['a', 'b'].map(someone) as [string, string];
    const { id } = await accept({ ...body, to: [a, b] });
    provider.acts.push({ kind: 'busy', detail: '503' }, (taken, call) => provider.take(taken, call));
    await deliverOne({ id, version: 0 });
    assert.deepEqual(await giveUp(deps, [id], 2, id), new Map([[id, 'queued']]));
    assert.deepEqual(await giveUp(deps, [id], 1, id), new Map([[id, 'sent']]));
    assert.deepEqual([(await email(id)).status, await recipientsOf(id)], ['sent', { [a]: 'failed', [b]: 'sent' }]);
  });

  test('refused for everyone ends as it was refused; a bounce names and suppresses its recipient', async () => {
    const { provider, accept, deliverOne, email, timeline } = desk();
    const [a, b] = ['a', 'b'].map(someone) as [string, string];
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
  test('has sent it to the others; each refusal is a bounce of its own', async () => {
    const { provider, accept, deliverOne, email, timeline } = desk();
    const [a, b, c] = ['a', 'b', 'c'].map(someone) as [string, string, string];
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
