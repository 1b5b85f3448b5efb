import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { describe, test } from 'node:test';
import { MockActivityEnvironment } from '@temporalio/testing';
import { makeMessageActivities } from '../../activities/index.ts';
import { newId } from '../../src/lib/ids.ts';
import { cancelMessage, rescheduleMessage } from '../../src/intake/messages.ts';
import { projectMessageReports } from '../../src/projection/messages.ts';
import type { ChatProvider } from '../../src/providers/chat-provider.ts';
import { deleteNumber } from '../../src/store/chat/numbers.ts';
import { insertEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { acceptText, chatRow, chatTimeline, connect, TO } from '../store/chats.ts';
import { inMs } from '../store/mail.ts';
import { makeMessagePace } from '../../src/delivery/messages/pace.ts';
import { organizationFixture } from '../support/organization.ts';
import { acceptedTexts, chatHarness, deliverChat, reportOf, ScriptedChat } from './chat-harness.ts';

const { pool, orgId } = await organizationFixture(8);
const accepted = acceptedTexts(pool, orgId);

describe('a message is sent', () => {
  test('with all fields', async () => {
    const { id, number, provider, deliver, outcomes } = await accepted();
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'sent', provider: 'twilio' });
    const { status, provider_message_id, look_in } = await chatRow(pool, id);
    assert.deepEqual([status, provider_message_id, look_in], ['sent', 'twilio 1', 2]);
    assert.deepEqual(await chatTimeline(pool, id), ['queued', 'sent']);
    assert.deepEqual(await outcomes(id), ['sent']);
    const { from, to, type, content } = provider.given[0] ?? {};
    assert.deepEqual([from, to, type, content?.text], [number.number, TO, 'text', 'Hello']);
  });

  test('once by repeated and by concurrent deliveries', async () => {
    const { id, provider, deliver } = await accepted();
    await deliver(id);
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'sent', provider: 'twilio' });
    assert.equal(provider.took.length, 1);
    const { id: other, ...workers } = await accepted();
    await Promise.all(Array.from({ length: 6 }, () => workers.deliver(other)));
    assert.equal(workers.provider.took.length, 1);
  });

  test('not after its claim has expired', async (t) => {
    const { id, provider, deliver, outcomes } = await accepted();
    const real = performance.now.bind(performance);
    // The clock advances by 21 s between any two readings.
    let readings = 0;
    t.mock.method(performance, 'now', () => real() + 21_000 * ++readings);
    assert.equal((await deliver(id)).state, 'again');
    t.mock.restoreAll();
    assert.equal(provider.given.length, 0);
    assert.deepEqual(await outcomes(id), [], 'it was not attempted');
  });

  test('not after its claim has expired while the provider prepared the request', async (t) => {
    const { id, provider, deliver, outcomes } = await accepted();
    const real = performance.now.bind(performance);
    let passedMs = 0;
    t.mock.method(performance, 'now', () => real() + passedMs);
    const took = provider.send.bind(provider);
    const slow: ChatProvider = provider;
    slow.send = async (message, expired) => {
      passedMs = 21_000;
      return expired?.() ?? took(message);
    };
    const result = await deliver(id);
    assert.ok(result.state === 'again' && result.postponed && result.reason === 'The worker was too slow to send it.');
    assert.equal(provider.took.length, 0);
    assert.deepEqual(await outcomes(id), [], 'it was not attempted');
  });

  test('not without a connection, which costs no attempt', async () => {
    const { id, provider, deliver, outcomes, deps } = await accepted();
    const line = deps.line;
    Object.assign(deps, { line: { ...line, run: () => Promise.resolve(undefined) } });
    const result = await deliver(id);
    assert.ok(result.state === 'again' && result.postponed, JSON.stringify(result));
    Object.assign(deps, { line: { ...line, stalledForMs: () => 10_000 } });
    const stalled = await deliver(id);
    assert.ok(stalled.state === 'again' && stalled.postponed && (stalled.afterMs ?? 0) >= 10_000);
    assert.deepEqual([provider.given, await outcomes(id)], [[], []]);
  });

  test('without its text and number in the log', async () => {
    const { id, provider, deliver, lines } = await accepted();
    provider.acts.push({ kind: 'refused', detail: `The number ${TO} is unknown.`, code: '63024' });
    await deliver(id);
    assert.match(lines.join(''), /63024/);
    assert.doesNotMatch(lines.join(''), /Hello|4915123456789/);
  });
});

describe('an answer of the chat-app provider:', () => {
  test('permanently refused: failed immediately, with its code', async () => {
    const { id, provider, deliver, outcomes } = await accepted();
    provider.acts.push({ kind: 'refused', detail: 'Twilio refused it: no.', code: '63024' });
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'failed', provider: 'twilio' });
    const { status, error, error_code, look_in } = await chatRow(pool, id);
    assert.deepEqual([status, error, error_code, look_in], ['failed', 'Twilio refused it: no.', '63024', null]);
    assert.deepEqual(await outcomes(id), ['refused']);
    assert.deepEqual(await chatTimeline(pool, id), ['queued', 'failed']);
  });

  test('busy: retried by policy, or after the time that the provider states', async () => {
    const { id, provider, deliver, outcomes } = await accepted();
    provider.acts.push({ kind: 'busy', detail: 'Later.' }, { kind: 'busy', detail: 'Later.', afterMs: 7_000 });
    assert.deepEqual(await deliver(id), { state: 'again', reason: 'Later.', failures: 1 });
    assert.deepEqual(await deliver(id), { state: 'again', reason: 'Later.', failures: 2, afterMs: 7_000 });
    assert.equal((await deliver(id)).state, 'ended');
    assert.deepEqual(await outcomes(id), ['again', 'again', 'sent']);
  });

  test('our account: retried in a minute, and logged as an error', async () => {
    const { id, provider, deliver, lines } = await accepted();
    provider.acts.push({ kind: 'account', detail: 'Wrong token.', code: '20003' });
    assert.deepEqual(await deliver(id), { state: 'again', reason: 'Wrong token.', failures: 0, afterMs: 60_000 });
    assert.match(lines.join(''), /"level":50.*refused our account/);
  });

  test('a NUL and a long text: stored without NUL and cut', async () => {
    const { id, provider, deliver } = await accepted();
    provider.acts.push({ kind: 'refused', detail: `a\0b${'x'.repeat(5_000)}`, code: '1\0' });
    await deliver(id);
    const { error, error_code } = await chatRow(pool, id);
    assert.deepEqual([error?.slice(0, 3), error?.length, error_code], ['abx', 2_000, '1']);
  });
});

describe('a message that cannot be sent fails immediately', () => {
  test('because its provider cannot deliver it', async () => {
    const { id, provider, deliver, outcomes } = await accepted();
    provider.refuses = () => 'Twilio accepts at most 1,600 characters.';
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'failed' });
    assert.equal((await chatRow(pool, id)).error, 'Twilio accepts at most 1,600 characters.');
    assert.deepEqual(await outcomes(id), []);
    assert.equal(provider.given.length, 0);
  });

  test('with an event for its endpoints, though the reason contains half of a surrogate pair', async () => {
    const url = 'https://example.com/hook';
    const endpoint = { id: newId('wh'), url, events: ['chatapp.failed'], description: null };
    await insertEndpoint(pool, orgId, endpoint, Buffer.from('sealed'));
    const { id, provider, deliver } = await accepted();
    provider.refuses = () => 'No type \ud83d.';
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'failed' });
    assert.equal((await chatRow(pool, id)).error, 'No type \ufffd.');
    const { rows } = await pool.query(`SELECT type FROM webhook_events WHERE data->>'messageId' = $1`, [id]);
    assert.deepEqual(rows, [{ type: 'chatapp.failed' }]);
  });

  test('because its number is disconnected', async () => {
    const { id, number, deliver } = await accepted();
    await deleteNumber(pool, orgId, number.id);
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'failed' });
    assert.match((await chatRow(pool, id)).error ?? '', /no longer connected/);
  });
});

describe('a scheduled chat-app message', () => {
  /** A message that is due in an hour. */
  async function scheduled() {
    const number = await connect(pool, orgId);
    const provider = new ScriptedChat();
    const at = inMs(3_600_000);
    const id = await acceptText(pool, orgId, number.number, {}, at);
    return { id, provider, at, ...chatHarness(pool, provider) };
  }

  test('waits until it is due by the database’s clock, then is claimed and sent', async () => {
    const { id, provider, at, deliver } = await scheduled();
    const early = await deliver(id);
    assert.ok(early.state === 'waiting' && early.inMs > 3_500_000 && early.dueAt === at && early.version === 0);
    assert.equal(provider.given.length, 0);
    await pool.query(`UPDATE chat_messages SET scheduled_at = now() WHERE id = $1`, [id]);
    assert.equal((await deliver(id)).state, 'ended');
    assert.equal((await chatRow(pool, id)).status, 'sent');
    assert.deepEqual(await chatTimeline(pool, id), ['scheduled', 'sent']);
  });

  test('is sent at its new time only, and not after it was canceled', async () => {
    const { id, provider, deps, deliver } = await scheduled();
    const intake = { pool, wakeRelay: () => undefined };
    const later = inMs(7_200_000);
    assert.equal((await rescheduleMessage(intake, orgId, 'chatapp', id, later)).scheduled_at, later);
    await pool.query(`UPDATE chat_messages SET scheduled_at = now() WHERE id = $1`, [id]);
    assert.equal((await deliver(id)).state, 'waiting', 'version 0 is not the latest');
    await pool.query(`UPDATE chat_messages SET scheduled_at = now() + interval '1 hour' WHERE id = $1`, [id]);
    await cancelMessage(intake, orgId, 'chatapp', id);
    assert.deepEqual(await deliverChat(deps, id, 1), { state: 'ended', status: 'canceled' });
    assert.equal(provider.given.length, 0);
    assert.deepEqual(await chatTimeline(pool, id), ['scheduled', 'rescheduled', 'canceled']);
    await assert.rejects(cancelMessage(intake, orgId, 'chatapp', id), { code: 'not_scheduled' });
  });

  test('cannot be rescheduled once it is claimed', async () => {
    const { id, provider, deliver } = await scheduled();
    await pool.query(`UPDATE chat_messages SET scheduled_at = now() WHERE id = $1`, [id]);
    provider.acts.push(async () => {
      const later = inMs(7_200_000);
      const moving = rescheduleMessage({ pool, wakeRelay: () => undefined }, orgId, 'chatapp', id, later);
      await assert.rejects(moving, { code: 'not_scheduled' });
      return { kind: 'sent', messageId: 'twilio 1' };
    });
    assert.equal((await deliver(id)).state, 'ended');
  });
});

describe('a number at its rate limit', () => {
  test('delays a message until its slot', async () => {
    const waits = [30, 0];
    const { id, provider, deliver } = await accepted('twilio', {
      pace: { ...makeMessagePace(80), reserve: () => waits.shift() ?? 0 },
    });
    assert.equal((await deliver(id)).state, 'ended');
    assert.equal(provider.took.length, 1);
    assert.equal(waits.length, 0);
  });

  test('postpones a message with a long wait, without an attempt', async () => {
    const { id, provider, deliver, outcomes } = await accepted('twilio', {
      pace: { ...makeMessagePace(80), reserve: () => 5_000 },
    });
    const reason = 'Its number is at its rate limit.';
    assert.deepEqual(await deliver(id), { state: 'again', reason, afterMs: 5_000, postponed: true });
    assert.equal(provider.given.length, 0);
    assert.deepEqual(await outcomes(id), []);
  });
});

describe('the activities', () => {
  test('throw NotAccepted without the recipient, with the time of the retry', async () => {
    const { id, provider, deps } = await accepted();
    provider.acts.push({ kind: 'busy', detail: `${TO} is busy.`, afterMs: 90_000 });
    const activities = makeMessageActivities(deps);
    const attempt = () => new MockActivityEnvironment().run(() => activities.deliverChat({ id, version: 0 }));
    await assert.rejects(attempt(), {
      type: 'NotAccepted',
      message: '+491***89 is busy.',
      nextRetryDelay: 90_000,
    });
    assert.deepEqual(await attempt(), { id, state: 'ended', status: 'sent', provider: 'twilio' });
  });

  test('fail a message when its attempts are used up, with the last answer and its code', async () => {
    const { id, provider, deps, deliver } = await accepted();
    const activities = makeMessageActivities(deps);
    const giveUp = () => activities.giveUpChat({ id, maximumAttempts: 2 });
    assert.equal(await giveUp(), 'queued');
    for (let i = 0; i < 2; i++) {
      provider.acts.push({ kind: 'busy', detail: 'Busy.', code: '63018' });
      assert.equal(await giveUp(), 'queued');
      await deliver(id);
    }
    assert.equal(await giveUp(), 'failed');
    assert.equal(await giveUp(), 'failed');
    const { error, error_code } = await chatRow(pool, id);
    assert.deepEqual([error, error_code], ['Busy. Given up after 2 attempts.', '63018']);
    assert.deepEqual(await chatTimeline(pool, id), ['queued', 'failed']);
  });

  test('do not fail a message that was reported meanwhile', async () => {
    const { id, deps } = await accepted();
    await projectMessageReports(pool, 'twilio', [reportOf(id, 'read', 'SM1')]);
    assert.equal(await makeMessageActivities(deps).giveUpChat({ id, maximumAttempts: 1 }), 'read');
  });
});
