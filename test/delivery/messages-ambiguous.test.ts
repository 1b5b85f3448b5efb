import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeMessageActivities } from '../../activities/index.ts';
import type { OutgoingChat } from '../../src/domain/chat/chat.ts';
import { projectMessageReports } from '../../src/projection/messages.ts';
import { acceptText, chatRow } from '../store/chats.ts';
import { eventually } from '../support/eventually.ts';
import { organizationFixture } from '../support/organization.ts';
import { assertRemaining } from '../support/remaining.ts';
import { acceptedTexts, chatHarness, reportOf } from './chat-harness.ts';

const { pool, orgId } = await organizationFixture(8);
const accepted = acceptedTexts(pool, orgId);

describe('an ambiguous call of a chat-app message', () => {
  test('is found at Twilio and not sent again', async () => {
    const { id, provider, deliver, die, outcomes } = await accepted();
    await die(id, true);
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'sent', provider: 'twilio' });
    assert.equal(provider.took.length, 1);
    assert.equal(provider.given.length, 0);
    assert.equal((await chatRow(pool, id)).provider_message_id, 'twilio 1');
    assert.deepEqual(await outcomes(id), ['sent']);
  });

  test('is sent again after two "not found" of Twilio, a minute apart', async () => {
    const { id, provider, deliver, die, age, outcomes } = await accepted();
    await die(id, false);
    assert.equal((await deliver(id)).state, 'again');
    assert.deepEqual(await deliver(id), {
      state: 'again',
      reason: 'The provider may not have it; it is asked once more.',
      afterMs: 60_000,
      postponed: true,
    });
    assert.equal(provider.given.length, 0);
    await age(id, 61);
    assert.equal((await deliver(id)).state, 'ended');
    assert.equal(provider.took.length, 1);
    assert.deepEqual(await outcomes(id), ['lost', 'sent']);
  });

  test('is not claimed again by a worker that began to shut down while it asked', async () => {
    const stopping = new AbortController();
    const { id, provider, deliver, die, age, outcomes } = await accepted('twilio', { stopping: stopping.signal });
    await die(id, false);
    await deliver(id);
    await age(id, 61);
    provider.find = async () => {
      stopping.abort();
      return undefined;
    };
    assert.deepEqual(await deliver(id), {
      state: 'again',
      reason: 'The worker is shutting down.',
      afterMs: 2_000,
      postponed: true,
    });
    assert.deepEqual([await outcomes(id), provider.given.length], [['lost'], 0]);
  });

  test('waits while Twilio cannot be asked', async () => {
    const { id, provider, deliver, die, outcomes } = await accepted();
    await die(id, true);
    provider.find = () => Promise.reject(new Error('away'));
    assert.deepEqual(await deliver(id), { state: 'again', reason: 'The provider cannot be asked now.', checks: 1 });
    assert.deepEqual(await outcomes(id), [null]);
  });

  test('is searched for at the time of its attempt by Postgres’s clock, not by that of the worker', async (t) => {
    const { id, provider, deliver, die } = await accepted();
    await die(id, false);
    const { rows } = await pool.query<{ startedAtMs: number }>(
      `SELECT (extract(epoch FROM started_at) * 1000)::float8 AS "startedAtMs" FROM attempts WHERE message_id = $1`,
      [id],
    );
    const startedAtMs = rows[0]?.startedAtMs ?? NaN;
    const periods: unknown[] = [];
    provider.find = async (_message, created) => void periods.push(created);
    const real = Date.now.bind(Date);
    t.mock.method(Date, 'now', () => real() + 600_000);
    assert.equal((await deliver(id)).state, 'again');
    assert.deepEqual(periods, [{ fromMs: startedAtMs - 30_000, untilMs: startedAtMs + 90_000 }]);
  });

  test('at Twilio, a match that is recorded for another message does not count', async () => {
    const { id, number, provider, deliver, die, deps } = await accepted();
    const twin = await acceptText(pool, orgId, number.number);
    provider.acts.push({ kind: 'sent', messageId: 'SM of the twin' });
    await chatHarness(pool, provider, deps).deliver(twin);
    await die(id, false);
    // Twilio's list contains the same text to the same number of another message.
    provider.find = async (_message, _created, isTaken) =>
      (await isTaken?.('SM of the twin')) === true ? undefined : 'SM of the twin';
    assert.equal((await deliver(id)).state, 'again');
    // As after its requeue as a fallback template, or before its answer is applied.
    await pool.query('UPDATE chat_messages SET provider_message_id = NULL WHERE id = $1', [twin]);
    assert.equal((await deliver(id)).state, 'again', 'only the attempt has the id');
  });

  test('at Twilio, a match that also fits another ambiguous message does not count', async () => {
    const { id, number, provider, deliver, die, age } = await accepted();
    const other = await acceptText(pool, orgId, number.number, { text: 'Its answer was lost.' });
    await die(id, false);
    const fitting: (boolean | undefined)[] = [];
    provider.find = async (_message, _created, isTaken) => {
      const alsoFits = ({ content }: OutgoingChat) => content.text === 'Its answer was lost.';
      fitting.push(await isTaken?.('SM of the other', alsoFits));
      return undefined;
    };
    await deliver(id);
    await die(other, true);
    await deliver(id);
    // It was not found and has been sent again.
    await pool.query(`UPDATE attempts SET outcome = 'lost' WHERE message_id = $1`, [other]);
    await pool.query(`UPDATE chat_messages SET provider_message_id = 'SM of the repeat' WHERE id = $1`, [other]);
    await deliver(id);
    await age(other, 3_600);
    await deliver(id);
    assert.deepEqual(fitting, [false, true, true, false]);
  });

  test('at Twilio, a match counts although it fits better to an ambiguous message whose call was over before', async () => {
    const { id, number, provider, deliver, die, age } = await accepted();
    const old = await acceptText(pool, orgId, number.number);
    await die(old, true);
    await age(old, 86_400);
    await pool.query(`UPDATE chat_messages SET status = 'failed' WHERE id = $1`, [old]);
    await die(id, false);
    provider.find = async (_message, _created, isTaken) =>
      (await isTaken?.('SM of a template', () => true)) === true ? undefined : 'SM of a template';
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'sent', provider: 'twilio' });
    assert.equal(provider.given.length, 0);
  });

  test('at Twilio, one match counts for only one of two equal messages that are looked up concurrently', async () => {
    const { id, number, provider, deliver, die } = await accepted();
    const twin = await acceptText(pool, orgId, number.number);
    for (const each of [id, twin]) await die(each, false);
    let looking = 0;
    provider.find = async (_message, _created, isTaken) => {
      assert.equal(await isTaken?.('SM of one'), false);
      looking++;
      await eventually('both are looked up', () => looking === 2);
      return 'SM of one';
    };
    const results = await Promise.all([id, twin].map((each) => deliver(each)));
    assert.deepEqual(results.map(({ state }) => state).sort(), ['again', 'ended']);
    const { rows } = await pool.query<{ outcome: string | null; provider_message_id: string | null }>(
      'SELECT outcome, provider_message_id FROM attempts WHERE message_id = ANY ($1) ORDER BY outcome',
      [[id, twin]],
    );
    assert.deepEqual(rows, [
      { outcome: 'sent', provider_message_id: 'SM of one' },
      { outcome: null, provider_message_id: null },
    ]);
  });

  test('at Meta, waits a minute for a report', async () => {
    const { id, provider, deliver, die } = await accepted('meta');
    await die(id, true);
    const result = await deliver(id);
    assert.ok(result.state === 'again');
    assertRemaining(result.afterMs, 60_000);
    await projectMessageReports(pool, 'meta', [reportOf(id, 'delivered', 'meta 1')]);
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'delivered', provider: 'meta' });
    assert.equal(provider.took.length, 1);
    assert.equal((await chatRow(pool, id)).provider_message_id, 'meta 1');
  });

  test('is sent again at most once at Meta, then fails with the reason', async () => {
    const { id, provider, deliver, age, outcomes, lines } = await accepted('meta');
    for (let round = 0; round < 4; round++) {
      provider.acts.push((message) => {
        provider.take(message);
        return { kind: 'unknown', detail: 'No answer.' };
      });
      await deliver(id);
      await age(id, 61);
    }
    assert.equal(provider.took.length, 2);
    assert.deepEqual(await outcomes(id), ['risked', 'unknown']);
    const { status, error } = await chatRow(pool, id);
    assert.equal(status, 'failed');
    assert.match(error ?? '', /may have been delivered.*sent again once/);
    assert.match(lines.join(''), /cannot be looked up/);
  });

  test('gives a message at Meta up when its attempts are used up, although the last one is ambiguous', async () => {
    const { id, provider, deps, deliver, age } = await accepted('meta', { ambiguousSendMaxRepeats: 10 });
    const activities = makeMessageActivities(deps);
    const giveUp = () => activities.giveUpChat({ id, maximumAttempts: 2 });
    for (let n = 0; n < 2; n++) {
      assert.equal(await giveUp(), 'queued');
      provider.acts.push({ kind: 'unknown', detail: 'No answer.' });
      await deliver(id);
      await age(id, 61);
    }
    assert.equal(await giveUp(), 'failed');
  });

  test('at Meta, fails after a minute when AMBIGUOUS_SEND is fail', async () => {
    const { id, provider, deliver, die, age, outcomes } = await accepted('meta', { ambiguousSend: 'fail' });
    await die(id, true);
    await age(id, 61);
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'failed' });
    assert.equal(provider.took.length, 1);
    assert.deepEqual(await outcomes(id), ['unknown']);
    assert.match((await chatRow(pool, id)).error ?? '', /may have accepted it/);
    await projectMessageReports(pool, 'meta', [reportOf(id, 'delivered', 'meta 1')]);
    const { status, error } = await chatRow(pool, id);
    assert.deepEqual([status, error], ['delivered', null], 'the truth is shown when it comes');
  });
});
