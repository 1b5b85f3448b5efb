import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { makeEmailActivities } from '../../activities/index.ts';
import { emailChannel } from '../../src/delivery/email/channel.ts';
import { giveUp } from '../../src/delivery/endings.ts';
import { makeProviderPauses } from '../../src/delivery/pauses.ts';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { findOverdue } from '../../src/store/emails/stuck.ts';
import { acceptText, chatRow, connect } from '../store/chats.ts';
import { organization } from '../store/mail.ts';
import { eventually } from '../support/eventually.ts';
import { organizationFixture } from '../support/organization.ts';
import { assertRemaining } from '../support/remaining.ts';
import { chatHarness, deliverChat, ScriptedChat } from './chat-harness.ts';
import { harness, ScriptedProvider } from './harness.ts';

const { pool, orgId } = await organizationFixture(10);
afterEach(async () => {
  await pool.query('DELETE FROM provider_pauses');
});

const REFUSED: SendOutcome = { kind: 'account', detail: 'The token is wrong.' };

/** Workers with the same providers, each with its own cache of pauses. */
function workers(count: number, ...names: ('postmark' | 'smtp')[]) {
  const providers = (names.length > 0 ? names : (['postmark'] as const)).map((name) => new ScriptedProvider(name));
  const [provider, other] = providers as [ScriptedProvider, ScriptedProvider];
  const all = Array.from({ length: count }, () => harness(pool, orgId, providers));
  return { provider, other, all, ...(all[0] as (typeof all)[0]) };
}

/** Empties the cache of pauses. */
async function forget(...deps: { deps: { pauses: unknown } }[]): Promise<void> {
  for (const each of deps)
    Object.assign(each.deps, { pauses: makeProviderPauses(pool, { error() {}, info() {}, warn() {} }) });
}

const probeNow = () => pool.query("UPDATE provider_pauses SET next_probe_at = now() - interval '1 min'");
async function pauses(): Promise<unknown[]> {
  const { rows } = await pool.query<object>('SELECT provider, sender, probes FROM provider_pauses ORDER BY 1, 2');
  return rows;
}

describe('an account that the provider refuses', () => {
  test('is paused, and further emails wait without an attempt', async () => {
    const { accept, deliverOne, provider, attempts, email } = workers(1);
    provider.acts.push(REFUSED);
    await deliverOne(await accept());
    const later = await accept();
    const result = await deliverOne(later);
    assert.ok(result.state === 'again' && result.postponed && result.reason === 'The token is wrong.');
    assert.ok((result.afterMs ?? 0) >= 5_000 && (result.afterMs ?? 0) <= 900_000, `${result.afterMs} ms`);
    assert.equal(provider.calls.length, 1);
    assert.deepEqual(await attempts(later.id), []);
    assert.equal((await email(later.id)).status, 'queued');
    assert.deepEqual(await pauses(), [{ provider: 'postmark', sender: '', probes: 0 }]);
  });

  test('makes an email whose first attempt waits for it overdue only after that wait', async () => {
    const { accept, deliverOne, provider, deps } = workers(1);
    provider.acts.push(REFUSED);
    await deliverOne(await accept());
    await pool.query(
      `UPDATE provider_pauses SET opened_at = now() - interval '2 hours', next_probe_at = now() + interval '1 hour'`,
    );
    await forget({ deps });
    const { id, version } = await accept();
    const result = await makeEmailActivities(deps).attemptEmail({ id, version });
    assert.ok(result.state === 'again' && (result.afterMs ?? 0) >= 600_000);
    await pool.query('DELETE FROM outbox');
    const letPass = (minutes: number) =>
      pool.query(
        `UPDATE emails SET created_at = created_at - make_interval(mins => $2), look_at = look_at - make_interval(mins => $2)
         WHERE id = $1`,
        [id, minutes],
      );
    const isOverdue = async () => (await findOverdue(pool, 1_000)).some((email) => email.id === id);
    await letPass(19);
    assert.ok(!(await isOverdue()));
    await letPass(7);
    assert.ok(await isOverdue());
  });

  test('is probed by one email of all workers, and resumes when that is sent', async () => {
    const { all, provider } = workers(4);
    const [first] = all as [(typeof all)[0]];
    provider.acts.push(REFUSED);
    await first.deliverOne(await first.accept());
    await probeNow();
    await forget(...all);
    let answer: (outcome: SendOutcome) => void = () => undefined;
    provider.acts.push(() => new Promise((resolve) => (answer = resolve)));
    const members = await first.acceptMany(40);
    let finished = 0;
    const running = all.map(async (worker, i) => {
      const results = await worker.deliver(...members.slice(i * 10, i * 10 + 10));
      finished++;
      return results;
    });
    const given = () => provider.given.length;
    // A worker that claims after the probe's answer finds the account resumed.
    await eventually('one worker probes, and the others have finished', () => given() === 2 && finished === 3);
    const waiting = await harness(pool, orgId, [provider]).deliverOne(await first.accept());
    assert.equal(waiting.state, 'again');
    assert.equal(given(), 2, 'the refused email and one probe');
    answer({ kind: 'sent', messageId: 'probe' });
    const results = (await Promise.all(running)).flat();
    assert.equal(results.filter(({ state }) => state === 'ended').length, 1);
    assert.equal(results.filter((result) => result.state === 'again' && result.postponed).length, 39);
    assert.deepEqual(await pauses(), []);
    await forget(...all);
    assert.equal((await first.deliverOne(await first.accept())).state, 'ended');
  });

  test('stays paused after a failed probe, and is probed less often', async () => {
    const { accept, deliverOne, provider, deps } = workers(1);
    provider.acts.push(REFUSED, REFUSED);
    const member = await accept();
    await deliverOne(member);
    await probeNow();
    await forget({ deps });
    await deliverOne(member);
    assert.deepEqual(await pauses(), [{ provider: 'postmark', sender: '', probes: 1 }]);
    const { rows } = await pool.query<{ wait: number }>(
      'SELECT 1000 * extract(epoch FROM next_probe_at - now())::float8 AS wait FROM provider_pauses',
    );
    assertRemaining(rows[0]?.wait, 60_000);
    await forget({ deps });
    assert.equal((await deliverOne(member)).state, 'again');
    assert.equal(provider.calls.length, 2);
  });

  test('is replaced by another provider', async () => {
    const { accept, deliverOne, provider, other } = workers(1, 'postmark', 'smtp');
    provider.acts.push(REFUSED);
    const member = await accept();
    assert.equal((await deliverOne(member)).state, 'again');
    const results = [await deliverOne(member), await deliverOne(await accept())];
    assert.deepEqual(
      results.map((result) => result.state === 'ended' && result.provider),
      ['smtp', 'smtp'],
    );
    assert.equal(other.took.length, 2);
    assert.equal(provider.calls.length, 1);
  });

  test('for one sender pauses no other sender', async () => {
    const { accept, deliverOne, provider } = workers(1);
    const theirs = harness(pool, await organization(pool, 'unconfirmed.example'), [provider]);
    const unconfirmed = (local: string) => ({
      ...{ from: `${local}@unconfirmed.example`, from_domain: 'unconfirmed.example' },
    });
    provider.acts.push({ ...REFUSED, scope: 'sender' });
    await deliverOne(await theirs.accept(unconfirmed('a')));
    assert.deepEqual(await pauses(), [{ provider: 'postmark', sender: 'unconfirmed.example', probes: 0 }]);
    assert.equal((await deliverOne(await theirs.accept(unconfirmed('b')))).state, 'again');
    assert.equal((await deliverOne(await accept())).state, 'ended');
    assert.equal((await pauses()).length, 1, 'the success of another sender ends no pause of this one');
  });
});

describe('an answer that may concern one message only', () => {
  const UNPROVEN: SendOutcome = { kind: 'account', detail: 'The firewall answered 403.', scope: 'organization' };
  const otherOrg = organization(pool, 'second.example');
  const other = { from: 'a@second.example', from_domain: 'second.example' };

  test('pauses its organization, and the account once a second organization is refused', async () => {
    const { accept, deliverOne, provider } = workers(1);
    const theirs = harness(pool, await otherOrg, [provider]);
    provider.acts.push(UNPROVEN);
    const refused = await accept();
    assert.equal((await deliverOne(refused)).state, 'again');
    assert.deepEqual(await pauses(), [{ provider: 'postmark', sender: `organization:${orgId}`, probes: 0 }]);
    assert.equal((await deliverOne(await accept())).state, 'again', 'the organization waits');
    assert.equal((await theirs.deliverOne(await theirs.accept(other))).state, 'ended', 'others do not');
    provider.acts.push(UNPROVEN);
    assert.equal((await theirs.deliverOne(await theirs.accept(other))).state, 'again');
    assert.deepEqual(await pauses(), [
      { provider: 'postmark', sender: '', probes: 0 },
      { provider: 'postmark', sender: `organization:${orgId}`, probes: 0 },
    ]);
  });

  test('for two organizations in one call pauses the account', async () => {
    const accountPauses = makeProviderPauses(pool, { error() {}, info() {}, warn() {} });
    const answer = (org: string) => ({
      provider: 'postmark',
      senders: [],
      refusal: { reason: 'no', sender: `organization:${org}` },
    });
    await accountPauses.record([answer('a'), answer('b'), { ...answer('c'), provider: 'smtp' }]);
    assert.deepEqual(await pauses(), [
      { provider: 'postmark', sender: '', probes: 0 },
      { provider: 'smtp', sender: 'organization:c', probes: 0 },
    ]);
  });

  test('does not end a pause of the account', async () => {
    const { accept, deliverOne, provider, deps } = workers(1);
    provider.acts.push(REFUSED, UNPROVEN);
    await deliverOne(await accept());
    await probeNow();
    await forget({ deps });
    await deliverOne(await accept());
    assert.deepEqual(await pauses(), [{ provider: 'postmark', sender: '', probes: 1 }]);
  });

  test('is probed by a message that only waits, before the refused one', async () => {
    const { accept, deliverOne, provider, deps } = workers(1);
    provider.acts.push(UNPROVEN);
    const refused = await accept();
    await deliverOne(refused);
    await pool.query('UPDATE provider_pauses SET next_probe_at = now()');
    await forget({ deps });
    assert.equal((await deliverOne(refused)).state, 'again');
    assert.equal(provider.calls.length, 1, 'the refused message leaves the probe to others');
    assert.equal((await deliverOne(await accept())).state, 'ended');
    assert.deepEqual(await pauses(), []);
    assert.equal((await deliverOne(refused)).state, 'ended');
  });

  test('is probed by the refused message if no other takes the probe', async () => {
    const { accept, deliverOne, provider, deps } = workers(1);
    provider.acts.push(UNPROVEN);
    const refused = await accept();
    await deliverOne(refused);
    await probeNow();
    await forget({ deps });
    assert.equal((await deliverOne(refused)).state, 'ended');
    assert.equal(provider.calls.length, 2);
  });
});

describe('an account that is paused as a whole and for one sender', () => {
  const from = { from: 'a@both.example', from_domain: 'both.example' };

  const theirOrg = organization(pool, from.from_domain);

  /** @param probeInS the seconds until the sender may be probed; the account may be probed now */
  async function pauseBoth(probeInS: number) {
    const worker = workers(1);
    const { provider } = worker;
    const theirs = harness(pool, await theirOrg, [provider]);
    await pool.query(
      `INSERT INTO provider_pauses (provider, sender, reason, next_probe_at)
       VALUES ('postmark', '', 'The token is wrong.', now()),
              ('postmark', $1, 'It is not confirmed.', now() + make_interval(secs => $2))`,
      [from.from_domain, probeInS],
    );
    return { ...worker, theirs };
  }

  test('is not probed by an email whose sender is held', async () => {
    const { theirs, accept, deliverOne, provider } = await pauseBoth(60);
    assert.equal((await theirs.deliverOne(await theirs.accept(from))).state, 'again');
    assert.equal(provider.calls.length, 0);
    assert.equal((await deliverOne(await accept())).state, 'ended');
    assert.deepEqual(await pauses(), [{ provider: 'postmark', sender: 'both.example', probes: 0 }]);
  });

  test('keeps its probe if another worker has taken that of the sender', async () => {
    const { theirs } = await pauseBoth(0);
    await theirs.deps.pauses.current();
    await pool.query("UPDATE provider_pauses SET next_probe_at = now() + interval '1 min' WHERE sender <> ''");
    assert.equal((await theirs.deliverOne(await theirs.accept(from))).state, 'again');
    assert.deepEqual(await pauses(), [
      { provider: 'postmark', sender: '', probes: 0 },
      { provider: 'postmark', sender: 'both.example', probes: 0 },
    ]);
  });

  for (const scope of ['sender', 'stream'] as const) {
    test(`resumes when the provider refuses only the ${scope} of its probe`, async () => {
      const { theirs, accept, deliverOne, provider } = await pauseBoth(0);
      Object.assign(provider, { streamOf: () => 'outbound' });
      provider.acts.push({ ...REFUSED, scope });
      assert.equal((await theirs.deliverOne(await theirs.accept(from))).state, 'again');
      assert.ok(!(await pauses()).some((pause) => (pause as { sender: string }).sender === ''));
      assert.equal((await deliverOne(await accept())).state, scope === 'sender' ? 'ended' : 'again');
    });
  }
});

describe('a message stream that the provider refuses', () => {
  const streamOf = ({ marketing }: { marketing: boolean }) => (marketing ? 'broadcast' : 'outbound');

  test('pauses the email on it, and no other email, until an email on it is sent', async () => {
    const { accept, deliverOne, provider, deps } = workers(1);
    Object.assign(provider, { streamOf });
    provider.acts.push({ ...REFUSED, scope: 'stream' });
    await deliverOne(await accept({ marketing: true }));
    assert.deepEqual(await pauses(), [{ provider: 'postmark', sender: 'stream:broadcast', probes: 0 }]);
    assert.equal((await deliverOne(await accept({ marketing: true }))).state, 'again');
    assert.equal((await deliverOne(await accept())).state, 'ended');
    assert.equal((await pauses()).length, 1, 'email on another stream does not end the pause');
    await probeNow();
    await forget({ deps });
    assert.equal((await deliverOne(await accept({ marketing: true }))).state, 'ended');
    assert.deepEqual(await pauses(), []);
  });

  test('has separate calls within a group', async () => {
    const { acceptMany, deliver, provider } = workers(1);
    Object.assign(provider, { streamOf });
    const members = await acceptMany(6, (i) => ({ marketing: i % 2 === 0 }));
    await deliver(...members);
    const streams = provider.calls.map(({ ids }) => {
      return ids.map((id) =>
        streamOf({ marketing: provider.given.some((email) => email.id === id && email.marketing) }),
      );
    });
    assert.deepEqual(streams.map((each) => each.join(' ')).sort(), [
      'broadcast broadcast broadcast',
      'outbound outbound outbound',
    ]);
  });
});

describe('the wait for an account', () => {
  test('uses up no attempts, and fails the email after ACCOUNT_RETRY_FOR', async () => {
    const { accept, deliverOne, provider, deps, email, attempts } = workers(1);
    const member = await accept();
    for (let i = 0; i < 20; i++) {
      provider.acts.push(REFUSED);
      await probeNow();
      await forget({ deps });
      await deliverOne(member);
    }
    assert.equal((await attempts(member.id)).length, 20);
    assert.equal((await giveUp(deps, emailChannel(deps), [member.id], 16, member.id)).get(member.id), 'queued');
    await pool.query("UPDATE attempts SET started_at = started_at - interval '71 hours' WHERE message_id = $1", [
      member.id,
    ]);
    assert.equal((await giveUp(deps, emailChannel(deps), [member.id], 16, member.id)).get(member.id), 'queued');
    await pool.query("UPDATE attempts SET started_at = started_at - interval '1 hour' WHERE message_id = $1", [
      member.id,
    ]);
    assert.equal((await giveUp(deps, emailChannel(deps), [member.id], 16, member.id)).get(member.id), 'failed');
    assert.equal((await email(member.id)).error, 'The token is wrong. Given up after 72 hours.');
  });

  test('fails an email that was never attempted after ACCOUNT_RETRY_FOR', async () => {
    const { accept, deliverOne, provider, deps, email } = workers(1);
    provider.acts.push(REFUSED);
    await deliverOne(await accept());
    const [old, recent] = [await accept(), await accept()];
    await pool.query("UPDATE provider_pauses SET opened_at = now() - interval '80 hours'");
    await pool.query("UPDATE emails SET created_at = now() - interval '73 hours' WHERE id = $1", [old.id]);
    await forget({ deps });
    assert.equal((await deliverOne(old)).state, 'ended');
    assert.equal((await deliverOne(recent)).state, 'again');
    const { status, error } = await email(old.id);
    assert.deepEqual([status, error], ['failed', 'The token is wrong. Given up after 72 hours.']);
    assert.equal(provider.calls.length, 1);
  });
});

test('a chat-app number whose account is refused is paused, and no other number', async () => {
  const [refused, other] = [await connect(pool, orgId), await connect(pool, orgId)];
  const provider = new ScriptedChat('twilio');
  const { deps, deliver } = chatHarness(pool, provider);
  provider.acts.push({ kind: 'account', detail: 'Wrong token.', code: '20003' });
  await deliver(await acceptText(pool, orgId, refused.number));
  assert.deepEqual(await pauses(), [{ provider: 'twilio', sender: refused.id, probes: 0 }]);
  const waiting = await acceptText(pool, orgId, refused.number);
  assert.equal((await deliver(waiting)).state, 'again');
  assert.equal((await deliver(await acceptText(pool, orgId, other.number))).state, 'ended');
  assert.equal((await chatRow(pool, waiting)).status, 'queued');
  await probeNow();
  await forget({ deps });
  assert.equal((await deliverChat(deps, waiting)).state, 'ended');
  assert.deepEqual(await pauses(), []);
});
