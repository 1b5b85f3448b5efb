import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { addSender } from '../../src/accounts/sms-senders.ts';
import { noLimits } from '../../src/intake/emails.ts';
import { sendSms } from '../../src/intake/sms.ts';
import { markAllAmbiguous } from '../../src/intake/after-restore.ts';
import { markEmailsAmbiguous, markMessagesAmbiguous } from '../../src/store/upkeep/after-restore.ts';
import { insertOutbox, lockEmailRows } from '../../src/store/outbox/outbox.ts';
import { acceptText, chatRow, connect } from '../store/chats.ts';
import { inMs } from '../store/mail.ts';
import { chatHarness, ScriptedChat } from '../delivery/chat-harness.ts';
import type { Member } from '../../src/delivery/contract.ts';
import { contents } from '../support/contents.ts';
import { organizationFixture } from '../support/organization.ts';
import { harnessWithProvider, sent } from '../delivery/harness.ts';

/** The steps after a restore of a backup. Each test has the only open messages. */
const { pool, orgId } = await organizationFixture(8);

/** A scheduled email with the version that the restore has raised. */
const rescheduled = (member: Member): Member => ({ ...member, version: 1_000_000 });

const BUSY: SendOutcome = { kind: 'busy', detail: 'not now' };

const make = () => harnessWithProvider(pool, orgId);

async function outbox(): Promise<[action: string, messageId: string][]> {
  const { rows } = await pool.query<{ action: string; message_id: string }>(
    'DELETE FROM outbox RETURNING action, message_id',
  );
  return rows.map(({ action, message_id }): [string, string] => [action, message_id]).sort();
}

describe('an email that was open when the backup was made', () => {
  test('is not sent again when the provider has it by an unrecorded call', async () => {
    const { provider, accept, deliverOne, outcomes } = make();
    const member = await accept();
    provider.take(member, 'call_forgotten');
    assert.equal(await markEmailsAmbiguous(pool, 'postmark'), 1);
    assert.deepEqual(await deliverOne(member), sent(member.id));
    assert.deepEqual([provider.calls.length, provider.took.length, provider.asked], [0, 1, 1]);
    assert.deepEqual(await outcomes(member.id), ['sent']);
  });

  test('is not sent again when the last recorded call failed', async () => {
    const { provider, accept, die, deliverOne, outcomes } = make();
    const [refused, died] = [await accept(), await accept()];
    provider.acts.push(BUSY);
    assert.equal((await deliverOne(refused)).state, 'again');
    await die(died, provider, 'call_remembered', false);
    for (const member of [refused, died]) provider.take(member, 'call_forgotten');
    assert.equal(await markEmailsAmbiguous(pool, 'postmark'), 2);
    for (const member of [refused, died]) assert.equal((await deliverOne(member)).state, 'ended');
    assert.equal(provider.took.length, 2);
    assert.deepEqual(await outcomes(refused.id), ['again', 'sent']);
    assert.deepEqual(await outcomes(died.id), [null, 'sent']);
  });

  test('is sent after a "not found" a minute after the restore', async () => {
    const { provider, accept, age, deliverOne, outcomes } = make();
    const member = await accept();
    await markEmailsAmbiguous(pool, 'postmark');
    const result = await deliverOne(member);
    assert.deepEqual([result.state, 'afterMs' in result && result.afterMs], ['again', 60_000]);
    await age(member.id, 60);
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.deepEqual(await outcomes(member.id), ['lost', 'sent']);
    assert.deepEqual([provider.asked, provider.took.length], [2, 1]);
  });

  for (const [copies, missing] of [
    [[0, 2], [1]],
    [[], [0, 1, 2]],
  ] as const) {
    test(`is sent only to recipients whose copies the provider does not have: it has ${copies.length} of 3`, async () => {
      const { provider, accept, age, deliverOne } = make();
      const to = ['one@example.net', 'Two <TWO@example.net>', 'three@example.net'];
      const member = await accept({ to, marketing: true });
      for (const copy of copies) provider.take({ id: member.id, copy }, 'call_forgotten');
      assert.deepEqual(await markAllAmbiguous(pool, 'postmark'), { emails: 1, messages: 0 });
      assert.equal((await deliverOne(member)).state, 'again');
      await age(member.id, 60);
      assert.equal((await deliverOne(member)).state, 'ended');
      const addresses = ['one@example.net', 'TWO@example.net', 'three@example.net'];
      assert.deepEqual(
        provider.given.map(({ copy, to: recipients }) => [copy, recipients[0]?.address]),
        missing.map((copy) => [copy, addresses[copy]]),
      );
    });
  }

  test('is sent once when it was scheduled and is due since, and cannot be canceled', async () => {
    const { provider, accept, deliverOne, email: row, timeline } = make();
    const member = await accept({ scheduled_at: inMs(3_600_000) });
    await markEmailsAmbiguous(pool, 'postmark');
    await pool.query(`UPDATE emails SET scheduled_at = now() WHERE id = $1`, [member.id]);
    provider.sees = false;
    assert.equal((await deliverOne(rescheduled(member))).state, 'again');
    assert.equal((await row(member.id)).status, 'queued', 'it is claimed, so it cannot be rescheduled or canceled');
    provider.sees = true;
    provider.take(member, 'call_forgotten');
    assert.deepEqual(await deliverOne(rescheduled(member)), sent(member.id));
    assert.equal((await row(member.id)).status, 'sent');
    assert.deepEqual(await timeline(member.id), ['scheduled', 'sent']);
    assert.equal((await deliverOne(rescheduled(member))).state, 'ended');
    assert.deepEqual([provider.calls.length, provider.took.length], [0, 1]);
  });

  test('is delivered to recipients without a copy, also after reports of others', async () => {
    const { provider, accept, deliverOne, outcomes } = make();
    const member = await accept({ to: ['one@example.net', 'two@example.net'], marketing: true });
    provider.acts.push((email, call) => provider.take(email, call), BUSY);
    assert.equal((await deliverOne(member)).state, 'again');
    await pool.query(`UPDATE emails SET status = 'delivered' WHERE id = $1`, [member.id]);
    await outbox();
    assert.deepEqual(await markAllAmbiguous(pool, 'postmark'), { emails: 1, messages: 0 });
    const client = await pool.connect();
    const rows = await lockEmailRows(client, 10);
    client.release();
    assert.deepEqual(
      rows.map(({ action, message_id, is_open }) => [action, message_id, is_open]),
      [['leave', member.id, true]],
    );
    provider.take({ id: member.id, copy: 1 }, 'call_forgotten');
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.deepEqual(await outcomes(member.id), ['sent', 'sent']);
    await outbox();
  });

  test('is searched when it is due, if it was scheduled', async () => {
    const { provider, accept, age, deliverOne } = make();
    const member = await accept({ scheduled_at: inMs(3_600_000) });
    assert.equal(await markEmailsAmbiguous(pool, 'postmark'), 1);
    assert.equal((await deliverOne(rescheduled(member))).state, 'waiting');
    await age(member.id, 3_600);
    await pool.query(`UPDATE emails SET scheduled_at = now() WHERE id = $1`, [member.id]);
    assert.equal((await deliverOne(rescheduled(member))).state, 'ended');
    assert.deepEqual([provider.asked, provider.took.length], [1, 1]);
  });

  test('is rescheduled to its time in the backup, if it is scheduled', async () => {
    const { acceptMany, deliverOne } = make();
    await outbox();
    const scheduled_at = inMs(3_600_000);
    const batch = { batch_id: 'bt_2', from_domain: 'acme.example', scheduled_at };
    const members = await acceptMany(3, (i) => (i === 0 ? { scheduled_at } : batch));
    const [single, member, moved] = members.map(({ id }) => id) as [string, string, string];
    await pool.query('UPDATE emails SET schedule_version = 2 WHERE id = $1', [moved]);
    assert.equal(await markEmailsAmbiguous(pool, 'postmark'), 3);
    const wanted: [string, string][] = [
      ['reschedule', single],
      ['start', member],
      ['reschedule', moved],
    ];
    assert.deepEqual(await outbox(), wanted.sort());
    for (const { id } of members) {
      // A workflow that got a reschedule after the backup.
      const result = await deliverOne({ id, version: 5 });
      assert.ok(result.state === 'waiting' && result.version >= 1_000_000 && result.dueAt === scheduled_at);
    }
    await pool.query(`UPDATE emails SET status = 'canceled' WHERE status = 'scheduled'`);
  });

  test('gets a new workflow or, in a batch, a new group, and loses its outbox rows', async () => {
    const { acceptMany } = make();
    await outbox();
    const batch = { batch_id: 'bt_1', from_domain: 'acme.example' };
    const [single, first, second] = (await acceptMany(3, (i) => (i === 0 ? {} : batch))).map(({ id }) => id) as [
      ...[string, string, string],
    ];
    await pool.query(`UPDATE emails SET workflow_id = 'grp_1' WHERE id = ANY ($1)`, [[single, first]]);
    await insertOutbox(pool, 'cancel', [single]);
    assert.equal(await markEmailsAmbiguous(pool, 'postmark'), 3);
    const wanted: [string, string][] = [
      ['leave', single],
      ['start', first],
      ['start', second],
    ];
    assert.deepEqual(await outbox(), wanted.sort());
    const { rows } = await pool.query(`SELECT FROM emails WHERE id = ANY ($1) AND workflow_id <> id`, [
      [single, first],
    ]);
    assert.equal(rows.length, 0);
    await pool.query(`UPDATE emails SET status = 'canceled' WHERE status IN ('queued', 'scheduled')`);
  });

  test('is searched for each email of a group, ten at a time', async () => {
    const { provider, acceptMany, deliver } = make();
    const members = await acceptMany(25);
    for (const member of members.slice(0, 20)) provider.take(member, 'call_forgotten');
    await markEmailsAmbiguous(pool, 'postmark');
    let asking = 0;
    let most = 0;
    const find = provider.find as NonNullable<typeof provider.find>;
    provider.find = async (call) => {
      most = Math.max(most, ++asking);
      await sleep(5);
      asking--;
      return find(call);
    };
    const results = await deliver(...members);
    assert.deepEqual(
      ['ended', 'again'].map((state) => results.filter((result) => result.state === state).length),
      [20, 5],
    );
    assert.deepEqual([provider.asked, most], [25, 10]);
    await pool.query(`UPDATE emails SET status = 'canceled' WHERE status = 'queued'`);
  });

  test('is not changed if it had ended', async () => {
    const { accept, deliverOne, outcomes } = make();
    const member = await accept();
    await deliverOne(member);
    assert.equal(await markEmailsAmbiguous(pool, 'postmark'), 0);
    assert.deepEqual(await outcomes(member.id), ['sent']);
  });
});

describe('a chat-app message that was open when the backup was made', () => {
  async function accepted(name: 'twilio' | 'meta') {
    const { number } = await connect(pool, orgId, name);
    const id = await acceptText(pool, orgId, number);
    const provider = new ScriptedChat(name);
    await outbox();
    // When the backup was made, a group delivered it.
    await pool.query(`UPDATE chat_messages SET workflow_id = 'grp_1' WHERE id = $1`, [id]);
    assert.equal(await markMessagesAmbiguous(pool), 1);
    assert.deepEqual(await outbox(), [['message_again', id]]);
    return { id, provider, ...chatHarness(pool, provider) };
  }

  test('is not sent again when Twilio has it, and sent when not', async () => {
    const has = await accepted('twilio');
    has.provider.take({ id: has.id });
    assert.equal((await has.deliver(has.id)).state, 'ended');
    assert.equal(has.provider.given.length, 0);
    assert.equal((await chatRow(pool, has.id)).status, 'sent');

    const lacks = await accepted('twilio');
    assert.equal((await lacks.deliver(lacks.id)).state, 'again');
    await lacks.age(lacks.id, 60);
    assert.equal((await lacks.deliver(lacks.id)).state, 'ended');
    assert.deepEqual(await lacks.outcomes(lacks.id), ['lost', 'sent']);
  });

  test('is not sent again when Twilio has it, if it is an SMS', async () => {
    await addSender(pool, orgId, '+12025550142', []);
    const deps = { pool, wakeRelay: () => undefined, limits: noLimits(), contents };
    const request = { from: null, to: '+4915123456789', text: 'Hi.', tags: [], scheduled_at: null };
    const { id } = await sendSms(deps, { orgId }, request);
    await outbox();
    assert.equal(await markMessagesAmbiguous(pool), 1);
    const provider = new ScriptedChat();
    provider.take({ id }, 'twilio sms');
    assert.equal((await chatHarness(pool, provider).deliverSms(id)).state, 'ended');
    assert.equal(provider.given.length, 0);
  });

  test('is searched for at Twilio from its acceptance until the restore', async () => {
    const { id, provider, deliver, age } = await accepted('twilio');
    await age(id, 3_600);
    const periods: number[] = [];
    provider.find = async (_message, { fromMs, untilMs }) => void periods.push(untilMs - fromMs);
    await deliver(id);
    assert.equal(periods.length, 1);
    assert.ok(Number(periods[0]) >= 3_660_000, `${periods[0]} ms`);
  });

  test('waits a minute for a report of Meta before AMBIGUOUS_SEND applies', async () => {
    const { id, provider, deliver, age, outcomes } = await accepted('meta');
    assert.equal((await deliver(id)).state, 'again');
    await age(id, 60);
    assert.equal((await deliver(id)).state, 'ended');
    assert.deepEqual([await outcomes(id), provider.took.length], [['risked', 'sent'], 1]);
  });
});
