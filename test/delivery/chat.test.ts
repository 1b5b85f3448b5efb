import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MockActivityEnvironment } from '@temporalio/testing';
import { makeChatActivities } from '../../activities/chat.ts';
import type { ChatDeps } from '../../src/delivery/chat/contract.ts';
import { projectChatReports } from '../../src/projection/chat.ts';
import type { ChatReport } from '../../src/providers/chat-provider.ts';
import { deleteNumber } from '../../src/store/chat/numbers.ts';
import { acceptText, chatRow, chatTimeline, connect, TO } from '../store/chats.ts';
import { organizationFixture } from '../support/organization.ts';
import { chatOffice, ScriptedChat } from './chat-office.ts';

const { pool, orgId } = await organizationFixture(8);

/** A message from a number of a provider of its own. */
async function accepted(name: 'twilio' | 'meta' = 'twilio', settings: Partial<ChatDeps> = {}) {
  const number = await connect(pool, orgId, name);
  const id = await acceptText(pool, orgId, number.number);
  const provider = new ScriptedChat(name);
  return { id, number, provider, ...chatOffice(pool, provider, settings) };
}

function told(id: string, change: ChatReport['change'], providerMessageId: string): ChatReport {
  return { change, messageId: id, providerMessageId, dedupeKey: `${providerMessageId} ${change}` };
}

describe('a message is handed over', () => {
  test('whole, and is sent', async () => {
    const { id, number, provider, deliver, outcomes } = await accepted();
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'sent', provider: 'twilio' });
    const { status, provider_message_id, look_in } = await chatRow(pool, id);
    assert.deepEqual([status, provider_message_id, look_in], ['sent', 'twilio 1', 2]);
    assert.deepEqual(await chatTimeline(pool, id), ['queued', 'sent']);
    assert.deepEqual(await outcomes(id), ['sent']);
    const { from, to, type, content } = provider.given[0] ?? {};
    assert.deepEqual([from, to, type, content?.text], [number.number, TO, 'text', 'Hello']);
  });

  test('once, however often it is tried', async () => {
    const { id, provider, deliver } = await accepted();
    await deliver(id);
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'sent' });
    await Promise.all(Array.from({ length: 5 }, () => deliver(id)));
    assert.equal(provider.took.length, 1);
  });

  test('once by workers at the same time', async () => {
    const { id, provider, deliver } = await accepted();
    const results = await Promise.all(Array.from({ length: 6 }, () => deliver(id)));
    assert.equal(provider.took.length, 1);
    assert.ok(results.some(({ state }) => state === 'ended'));
  });

  test('with nothing of it in the log', async () => {
    const { id, provider, deliver, lines } = await accepted();
    provider.acts.push({ kind: 'refused', detail: `The number ${TO} is unknown.`, code: '63024' });
    await deliver(id);
    assert.match(lines.join(''), /63024/);
    assert.doesNotMatch(lines.join(''), /Hello|4915123456789/);
  });
});

describe('what a provider answers', () => {
  test('refused for good: failed at once, with its code', async () => {
    const { id, provider, deliver, outcomes } = await accepted();
    provider.acts.push({ kind: 'refused', detail: 'Twilio refused it: no.', code: '63016' });
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'failed', provider: 'twilio' });
    const { status, error, error_code, look_in } = await chatRow(pool, id);
    assert.deepEqual([status, error, error_code, look_in], ['failed', 'Twilio refused it: no.', '63016', null]);
    assert.deepEqual(await outcomes(id), ['refused']);
    assert.deepEqual(await chatTimeline(pool, id), ['queued', 'failed']);
  });

  test('busy: again by policy, or when the provider says', async () => {
    const { id, provider, deliver, outcomes } = await accepted();
    provider.acts.push({ kind: 'busy', detail: 'Later.' }, { kind: 'busy', detail: 'Later.', after: 7_000 });
    assert.deepEqual(await deliver(id), { state: 'again', reason: 'Later.' });
    assert.deepEqual(await deliver(id), { state: 'again', reason: 'Later.', afterMs: 7_000 });
    assert.equal((await deliver(id)).state, 'ended');
    assert.deepEqual(await outcomes(id), ['again', 'again', 'sent']);
  });

  test('our account: again in a minute, and logged as an error', async () => {
    const { id, provider, deliver, lines } = await accepted();
    provider.acts.push({ kind: 'account', detail: 'Wrong token.', code: '20003' });
    assert.deepEqual(await deliver(id), { state: 'again', reason: 'Wrong token.', afterMs: 60_000 });
    assert.match(lines.join(''), /"level":50.*refused our account/);
  });

  test('anything: a NUL and an endless text can be written down', async () => {
    const { id, provider, deliver } = await accepted();
    provider.acts.push({ kind: 'refused', detail: `a\0b${'x'.repeat(5_000)}`, code: '1\0' });
    await deliver(id);
    const { error, error_code } = await chatRow(pool, id);
    assert.deepEqual([error?.slice(0, 3), error?.length, error_code], ['abx', 2_000, '1']);
  });
});

describe('a message that cannot be sent fails at once', () => {
  test('because its provider cannot carry it', async () => {
    const { id, provider, deliver, outcomes } = await accepted();
    provider.refuses = () => 'Twilio carries at most 1,600 characters.';
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'failed' });
    assert.equal((await chatRow(pool, id)).error, 'Twilio carries at most 1,600 characters.');
    assert.deepEqual(await outcomes(id), []);
    assert.equal(provider.given.length, 0);
  });

  test('because its number is not connected any more', async () => {
    const { id, number, deliver } = await accepted();
    await deleteNumber(pool, orgId, number.id);
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'failed' });
    assert.match((await chatRow(pool, id)).error ?? '', /not connected any more/);
  });
});

describe('a call whose end nobody saw', () => {
  test('is found at Twilio and not sent again', async () => {
    const { id, provider, deliver, die, outcomes } = await accepted();
    await die(id, true);
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'sent', provider: 'twilio' });
    assert.equal(provider.took.length, 1);
    assert.equal(provider.given.length, 0);
    assert.equal((await chatRow(pool, id)).provider_message_id, 'twilio 1');
    assert.deepEqual(await outcomes(id), ['sent']);
  });

  test('is sent again when Twilio says no twice, a minute apart', async () => {
    const { id, provider, deliver, die, age, outcomes } = await accepted();
    await die(id, false);
    assert.equal((await deliver(id)).state, 'again');
    assert.deepEqual(await deliver(id), {
      state: 'again',
      reason: 'The provider may not have it; it is asked once more.',
      afterMs: 60_000,
    });
    assert.equal(provider.given.length, 0);
    await age(id, 61);
    assert.equal((await deliver(id)).state, 'ended');
    assert.equal(provider.took.length, 1);
    assert.deepEqual(await outcomes(id), ['lost', 'sent']);
  });

  test('waits while Twilio cannot be asked', async () => {
    const { id, provider, deliver, die, outcomes } = await accepted();
    await die(id, true);
    provider.find = () => Promise.reject(new Error('away'));
    assert.deepEqual(await deliver(id), { state: 'again', reason: 'The provider cannot be asked now.' });
    assert.deepEqual(await outcomes(id), [null]);
  });

  test('at Twilio, what is known as another message is not this one', async () => {
    const { id, number, provider, deliver, die, deps } = await accepted();
    const twin = await acceptText(pool, orgId, number.number);
    await chatOffice(pool, provider, deps).deliver(twin);
    await die(id, false);
    // As Twilio's list has it: the same words to the same person, whoever's they are.
    provider.find = async (_message, _since, isAnothers) =>
      (await isAnothers?.('twilio 1')) === true ? undefined : 'twilio 1';
    assert.equal((await deliver(id)).state, 'again');
  });

  test('at Meta, is left alone for a minute, since a report may still tell', async () => {
    const { id, provider, deliver, die } = await accepted('meta');
    await die(id, true);
    const result = await deliver(id);
    assert.ok(result.state === 'again' && (result.afterMs ?? 0) > 30_000 && (result.afterMs ?? 0) <= 60_000);
    await projectChatReports(pool, 'meta', [told(id, 'delivered', 'meta 1')]);
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'delivered' });
    assert.equal(provider.took.length, 1);
    assert.equal((await chatRow(pool, id)).provider_message_id, 'meta 1');
  });

  test('at Meta, is sent again after that when AMBIGUOUS_SEND says retry', async () => {
    const { id, provider, deliver, die, age, outcomes, lines } = await accepted('meta');
    await die(id, true);
    await age(id, 61);
    assert.equal((await deliver(id)).state, 'ended');
    assert.equal(provider.took.length, 2);
    assert.deepEqual(await outcomes(id), ['risked', 'sent']);
    assert.match(lines.join(''), /cannot be looked up/);
  });

  test('is sent again at most once at Meta, then fails with the reason', async () => {
    const { id, provider, deliver, age, outcomes } = await accepted('meta');
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
  });

  test('gives a message at Meta up when its attempts are used up, although the last one is ambiguous', async () => {
    const { id, provider, deps, deliver, age } = await accepted('meta', { ambiguousSendMaxRepeats: 10 });
    const activities = makeChatActivities(deps);
    const giveUp = () => activities.giveUpChat({ id, maximumAttempts: 2 });
    for (let n = 0; n < 2; n++) {
      assert.equal(await giveUp(), 'queued');
      provider.acts.push({ kind: 'unknown', detail: 'No answer.' });
      await deliver(id);
      await age(id, 61);
    }
    assert.equal(await giveUp(), 'failed');
  });

  test('at Meta, fails after that when AMBIGUOUS_SEND says fail', async () => {
    const { id, provider, deliver, die, age, outcomes } = await accepted('meta', { ambiguousSend: 'fail' });
    await die(id, true);
    await age(id, 61);
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'failed' });
    assert.equal(provider.took.length, 1);
    assert.deepEqual(await outcomes(id), ['unknown']);
    assert.match((await chatRow(pool, id)).error ?? '', /may have taken it/);
    await projectChatReports(pool, 'meta', [told(id, 'delivered', 'meta 1')]);
    const { status, error } = await chatRow(pool, id);
    assert.deepEqual([status, error], ['delivered', null], 'the truth is shown when it comes');
  });

  test('an answer that got lost is asked about', async () => {
    const { id, provider, deliver } = await accepted();
    provider.acts.push((message) => {
      provider.take(message);
      return { kind: 'unknown', detail: 'No answer.' };
    });
    assert.deepEqual(await deliver(id), { state: 'again', reason: 'No answer.' });
    assert.equal((await deliver(id)).state, 'ended');
    assert.equal(provider.took.length, 1);
  });
});

describe('a number that sends as fast as it may', () => {
  test('holds a message back for its turn', async () => {
    const waits = [30, 0];
    const { id, provider, deliver } = await accepted('twilio', { pace: { reserve: () => waits.shift() ?? 0 } });
    assert.equal((await deliver(id)).state, 'ended');
    assert.equal(provider.took.length, 1);
    assert.equal(waits.length, 0);
  });

  test('sends a message away that would wait for long, and that costs no attempt', async () => {
    const { id, provider, deliver, outcomes } = await accepted('twilio', { pace: { reserve: () => 5_000 } });
    const reason = 'Its number sends as fast as it may.';
    assert.deepEqual(await deliver(id), { state: 'again', reason, afterMs: 5_000 });
    assert.equal(provider.given.length, 0);
    assert.deepEqual(await outcomes(id), []);
  });
});

describe('the activities', () => {
  test('say what was not taken without its recipient, and when to try again', async () => {
    const { id, provider, deps } = await accepted();
    provider.acts.push({ kind: 'busy', detail: `${TO} is busy.`, after: 90_000 });
    const activities = makeChatActivities(deps);
    const deliverChat = () => new MockActivityEnvironment().run(() => activities.deliverChat({ id }));
    await assert.rejects(deliverChat(), {
      type: 'NotTaken',
      message: '+491***89 is busy.',
      nextRetryDelay: 90_000,
    });
    assert.deepEqual(await deliverChat(), {
      state: 'ended',
      status: 'sent',
      provider: 'twilio',
    });
  });

  test('give a message up when its attempts are used up, with the last answer and its code', async () => {
    const { id, provider, deps, deliver } = await accepted();
    const activities = makeChatActivities(deps);
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

  test('a message that was reported meanwhile is not given up', async () => {
    const { id, deps } = await accepted();
    await projectChatReports(pool, 'twilio', [told(id, 'read', 'SM1')]);
    assert.equal(await makeChatActivities(deps).giveUpChat({ id, maximumAttempts: 1 }), 'read');
  });
});
