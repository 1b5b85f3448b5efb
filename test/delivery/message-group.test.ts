import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { type GroupDelivery, makeMessageGroupActivities } from '../../activities/index.ts';
import type { AttemptLimit } from '../../activities/temporal.ts';
import type { MessageDeps } from '../../src/delivery/messages/contract.ts';
import { makeMessagePace } from '../../src/delivery/messages/pace.ts';
import { newId } from '../../src/lib/ids.ts';
import type { ChatOutcome } from '../../src/providers/chat-provider.ts';
import { projectMessageReschedule, projectMessages } from '../../src/projection/messages.ts';
import { groupOutboxRows, lockMessageRows } from '../../src/store/outbox/outbox.ts';
import { acceptSms, chatRow } from '../store/chats.ts';
import { inMs } from '../store/mail.ts';
import { organizationFixture } from '../support/organization.ts';
import { chatHarness, ScriptedChat } from './chat-harness.ts';

const { pool, orgId } = await organizationFixture(8);

const POLICY = { initialInterval: 2_000, backoffCoefficient: 2, maximumInterval: 1_800_000, maximumAttempts: 16 };
const BUSY: ChatOutcome = { kind: 'busy', detail: 'Too many requests.', code: '20429', afterMs: 30_000 };
const REFUSED: ChatOutcome = { kind: 'refused', detail: 'Invalid number.', code: '21211' };
let senders = 0;

type Settings = Partial<MessageDeps> & { readonly queue?: 'chat-bursts' | 'chat-groups' };

/** A stored group of `n` SMS of one sender. That of late ones has time enough on a busy machine. */
async function group(n: number, { queue = 'chat-groups', ...settings }: Settings = {}) {
  const provider = new ScriptedChat();
  const set = chatHarness(pool, provider, settings);
  const activities = makeMessageGroupActivities(set.deps)[queue];
  const env = new MockActivityEnvironment({ attempt: 1, retryPolicy: POLICY });
  const from = `+1202557${1_000 + ++senders}`;
  const ids: string[] = [];
  // Of a time that is over, so that they can be rescheduled and canceled until they are claimed.
  for (let i = 0; i < n; i++) ids.push(await acceptSms(pool, orgId, { from, scheduledAt: inMs(3_600_000) }));
  await pool.query(`UPDATE chat_messages SET scheduled_at = now() WHERE id = ANY ($1)`, [ids]);
  const rows = (await lockMessageRows(pool, 1_000)).filter(({ message_id }) => ids.includes(message_id));
  const id = newId('grp');
  const grouped = rows.map((row) => ({ outboxId: row.id, id: row.message_id, version: row.version }));
  await groupOutboxRows(pool, [{ id, isLate: false, members: grouped }], 'chat_messages');
  const input = { id, members: ids.map((member) => ({ id: member, version: 0 })), channel: 'sms' } as const;
  return {
    ...set,
    ids,
    provider,
    deliver: (limit: AttemptLimit = {}): Promise<GroupDelivery> =>
      env.run(() => activities.deliverGroup({ ...input, ...limit })),
    cancel: (): Promise<void> => env.run(() => activities.cancelGroup(input)),
    statuses: async () => Promise.all(ids.map(async (member) => (await chatRow(pool, member)).status)),
    /** What is in the outbox about its members, with the wait in seconds. */
    left: async () => {
      const { rows: found } = await pool.query<{ id: string; action: string; wait: number }>(
        `SELECT message_id AS id, action, round(extract(epoch FROM retry_at - now()))::int AS wait
         FROM outbox WHERE message_id = ANY ($1) ORDER BY id`,
        [ids],
      );
      return found;
    },
    workflows: async () => {
      const { rows: found } = await pool.query<{ workflow_id: string | null }>(
        `SELECT workflow_id FROM chat_messages WHERE id = ANY ($1) ORDER BY id`,
        [ids],
      );
      return found.map(({ workflow_id }) => workflow_id);
    },
    id,
  };
}

async function failure(delivery: Promise<unknown>): Promise<ApplicationFailure> {
  const error = await delivery.then(
    () => assert.fail('it did not fail'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ApplicationFailure, String(error));
  return error;
}

describe('delivering a group of SMS', () => {
  test('sends each of them once, several at a time, and counts them', async () => {
    const { deliver, provider, ids, statuses, outcomes, id, workflows } = await group(40);
    assert.deepEqual(new Set(await workflows()), new Set([id]));
    let [running, most] = [0, 0];
    const take = async (message: { id: string }): Promise<ChatOutcome> => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 30));
      running--;
      return provider.take(message);
    };
    provider.acts.push(...ids.map(() => take));
    assert.deepEqual(await deliver(), { counts: { sent: 40 }, providers: ['twilio'] });
    assert.deepEqual(provider.took.map((taken) => taken.id).sort(), ids);
    assert.deepEqual(new Set(await statuses()), new Set(['sent']));
    assert.deepEqual(await outcomes(ids[0] ?? ''), ['sent']);
    assert.ok(most > 4 && most <= 24, `${most} at a time`);
  });

  test('sends nothing again that is sent already, and asks nobody about it', async () => {
    const { deliver, provider } = await group(3);
    await deliver();
    assert.deepEqual(await deliver(), { counts: { sent: 3 }, providers: ['twilio'] });
    assert.deepEqual([provider.took.length, provider.asked], [3, 0]);
  });

  test('fails the one that its provider refuses, and sends the others', async () => {
    const { deliver, provider, statuses } = await group(4);
    provider.acts.push(REFUSED);
    assert.deepEqual((await deliver()).counts, { failed: 1, sent: 3 });
    assert.deepEqual((await statuses()).sort(), ['failed', 'sent', 'sent', 'sent']);
  });

  test('detaches the few that were not taken for the time that the provider asks for', async () => {
    const { deliver, provider, left, workflows, id } = await group(6);
    provider.acts.push(BUSY);
    assert.deepEqual((await deliver()).counts, { detached: 1, sent: 5 });
    assert.deepEqual(
      (await left()).map(({ action, wait }) => [action, wait]),
      [['message_again', 30]],
    );
    assert.equal((await workflows()).filter((workflow) => workflow === id).length, 5);
  });

  test('leaves a number alone that answers 429 to several in a row, and goes on after the time that it asks for', async () => {
    const { deliver, provider, ids, outcomes } = await group(120);
    provider.acts.push(...Array.from({ length: 200 }, () => BUSY));
    const error = await failure(deliver());
    assert.equal(error.message, '120 of 120 messages were not accepted. Too many requests.');
    assert.equal(error.nextRetryDelay, 30_000);
    assert.ok(provider.given.length <= 30, `${provider.given.length} calls`);
    provider.acts.length = 0;
    assert.deepEqual(await deliver(), { counts: { sent: 120 }, providers: ['twilio'] });
    assert.deepEqual(provider.took.map((taken) => taken.id).sort(), ids);
    const attempts = await Promise.all(ids.map(outcomes));
    assert.equal(attempts.filter((of) => of.length === 1).length >= 90, true, 'most of them have a single attempt');
  });

  test('skips the one that was canceled and the one that was rescheduled since', async () => {
    const { deliver, provider, ids, workflows } = await group(4);
    const [canceled = '', moved = ''] = ids;
    await projectMessages(pool, 'canceled', [{ id: canceled }]);
    await projectMessageReschedule(pool, { orgId, channel: 'sms' }, moved, inMs(7_200_000));
    assert.deepEqual((await deliver()).counts, { canceled: 1, scheduled: 1, sent: 2 });
    assert.deepEqual(provider.took.map((taken) => taken.id).sort(), ids.slice(2));
    assert.equal((await workflows())[1], null);
  });

  test('sends none of them after it was canceled', async () => {
    const { deliver, cancel, provider } = await group(3);
    await cancel();
    assert.deepEqual((await deliver()).counts, { canceled: 3 });
    assert.equal(provider.given.length, 0);
  });

  test('asks the provider about those that a worker was sending when it died, and sends only what it does not have', async () => {
    const { deliver, provider, ids, die, age, statuses } = await group(5, { confirmNotFoundAfterMs: -1 });
    const [taken = '', lost = ''] = ids;
    for (const id of [taken, lost]) await die(id, false);
    // An id that no other test's provider has given.
    provider.take({ id: taken }, `SM ${taken}`);
    for (const id of [taken, lost]) await age(id, 120);
    assert.deepEqual((await deliver()).counts, { sent: 5 });
    assert.deepEqual(provider.took.map(({ id }) => id).sort(), ids);
    assert.equal(provider.asked, 2);
    assert.deepEqual(new Set(await statuses()), new Set(['sent']));
  });

  test('fails a member whose attempts are used up', async () => {
    const { deliver, provider } = await group(3);
    provider.acts.push(BUSY);
    assert.deepEqual((await deliver({ maximumAttempts: 1 })).counts, { failed: 1, sent: 2 });
  });
});

describe('a number at its rate limit', () => {
  // Ten messages a second, after a burst of ten.
  const slow = () => ({ pace: makeMessagePace(10) });

  test('lets a group of those that are due now go for two seconds; the others wait with those that are late', async () => {
    const { deliver, provider, ids, left, workflows } = await group(60, { queue: 'chat-bursts', ...slow() });
    const { counts } = await deliver();
    const sent = provider.took.length;
    assert.ok(sent < 60, `${sent} sent`);
    assert.deepEqual(counts, { detached: 60 - sent, ...(sent > 0 && { sent }) });
    const rows = await left();
    const waiting = new Set(rows.map(({ id }) => id));
    assert.deepEqual([...waiting, ...provider.took.map(({ id }) => id)].sort(), ids);
    assert.ok(rows.every(({ wait }) => wait <= 0));
    assert.equal((await workflows()).filter((workflow) => workflow === null).length, waiting.size);
  });

  test('is waited for by a group of late ones', async () => {
    const { deliver, provider, ids } = await group(35, slow());
    assert.deepEqual((await deliver()).counts, { sent: 35 });
    assert.deepEqual(provider.took.map(({ id }) => id).sort(), ids);
  });
});
