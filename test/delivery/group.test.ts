import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Info } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { type GroupDelivery, makeGroupActivities } from '../../activities/index.ts';
import type { Member } from '../../src/delivery/email/contract.ts';
import { newId } from '../../src/domain/ids.ts';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { foldOutbox, lockOutbox } from '../../src/store/outbox/outbox.ts';
import type { NewEmail } from '../../src/store/emails/emails.ts';
import { projectReschedule } from '../../src/projection/emails.ts';
import { inMs } from '../store/mail.ts';
import { organizationFixture } from '../support/organization.ts';
import { office, ScriptedProvider } from './office.ts';

const { pool, orgId } = await organizationFixture();

const POLICY = { initialInterval: 2_000, backoffCoefficient: 2, maximumInterval: 1_800_000, maximumAttempts: 16 };
const BUSY: SendOutcome = { kind: 'busy', detail: 'busy now' };

/** A group of `n` stored emails, as a relay leaves it. */
async function group(
  n: number,
  fields: Partial<NewEmail> | ((i: number) => Partial<NewEmail>) = {},
  info: Partial<Info> = {},
) {
  const provider = new ScriptedProvider();
  const set = office(pool, orgId, [provider]);
  const activities = makeGroupActivities(set.deps);
  const env = new MockActivityEnvironment({ attempt: 1, retryPolicy: POLICY, ...info });
  const id = newId('grp', Date.now());
  const members = await set.acceptMany(n, typeof fields === 'function' ? fields : () => fields);
  const ids = new Set(members.map((member) => member.id));
  const rows = (await lockOutbox(pool, 10_000)).filter((row) => ids.has(row.message_id));
  await foldOutbox(
    pool,
    rows.map((row) => ({ outboxId: row.id, id: row.message_id, version: row.version, group: id })),
  );
  const statuses = async () => Promise.all(members.map(async (member) => (await set.email(member.id)).status));
  return {
    ...set,
    id,
    members,
    provider,
    statuses,
    deliver: (some: readonly Member[] = members): Promise<GroupDelivery> =>
      env.run(() => activities.deliverGroup({ id, members: some })),
    giveUp: (maximumAttempts: number): Promise<void> =>
      env.run(() => activities.giveUpGroup({ id, members, maximumAttempts })),
    cancel: (): Promise<void> => env.run(() => activities.cancelGroup({ id, members })),
    /** Emails that left, with the seconds that they wait. */
    left: async () => {
      const { rows: found } = await pool.query<{ id: string; wait: number }>(
        `SELECT message_id AS id, round(extract(epoch FROM retry_at - now()))::int AS wait
         FROM outbox WHERE action = 'leave' AND message_id = ANY ($1) ORDER BY id`,
        [[...ids]],
      );
      return found;
    },
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

describe('delivering a group', () => {
  test('hands all of them over in one call and says so', async () => {
    const { deliver, provider, members, statuses } = await group(30);
    assert.deepEqual(await deliver(), { counts: { sent: 30 }, providers: ['postmark'] });
    assert.deepEqual(
      provider.calls.map(({ ids }) => ids.length),
      [members.length],
    );
    assert.deepEqual(new Set(await statuses()), new Set(['sent']));
  });

  test('makes as many calls as the provider needs', async () => {
    const { deliver, provider } = await group(25);
    provider.callSize = 10;
    assert.deepEqual((await deliver()).counts, { sent: 25 });
    assert.deepEqual(
      provider.calls.map(({ ids }) => ids.length),
      [10, 10, 5],
    );
    assert.equal(new Set(provider.calls.map(({ call }) => call)).size, 3);
  });

  test('holds no more than 16 MB of bodies at a time', async () => {
    const { deliver, provider } = await group(9, { text: null, html: 'x'.repeat(4 * 1_048_576) });
    assert.deepEqual((await deliver()).counts, { sent: 9 });
    assert.deepEqual(
      provider.calls.map(({ ids }) => ids.length),
      [4, 4, 1],
    );
  });

  test('sends the large emails after all others', async () => {
    const { deliver, provider, members } = await group(6, (i) => (i < 2 ? { text: 'x'.repeat(100_000) } : {}));
    assert.deepEqual((await deliver()).counts, { sent: 6 });
    const [large, small] = [members.slice(0, 2), members.slice(2)].map((some) => some.map(({ id }) => id).sort());
    assert.deepEqual(
      provider.calls.map(({ ids }) => ids.sort()),
      [small, large],
    );
  });

  test('is repeated without harm', async () => {
    const { deliver, provider } = await group(3);
    const first = await deliver();
    assert.deepEqual((await deliver()).counts, first.counts);
    assert.equal(provider.took.length, 3);
  });

  test('the few that were not taken leave, and wait as long as the policy or the provider says', async () => {
    const { deliver, provider, members, left, email } = await group(5, {}, { attempt: 2 });
    provider.acts.push({ kind: 'sent', messageId: 'a' }, BUSY, { ...BUSY, after: 90_000 });
    assert.deepEqual(await deliver(), { counts: { left: 2, sent: 3 }, providers: ['postmark'] });
    assert.deepEqual(await left(), [
      { id: members[1]?.id, wait: 4 },
      { id: members[2]?.id, wait: 90 },
    ]);
    assert.equal((await email(members[1]?.id ?? '')).status, 'queued');
  });

  test('those that left are not its business any more', async () => {
    const { deliver, provider, members } = await group(3);
    provider.acts.push(BUSY);
    await deliver();
    const calls = provider.calls.length;
    assert.deepEqual((await deliver()).counts, { queued: 1, sent: 2 });
    assert.equal(provider.calls.length, calls);
    assert.ok(!provider.took.some(({ id }) => id === members[0]?.id));
  });

  test('all that were not taken stay together and are tried again', async () => {
    const { deliver, provider, members, left } = await group(3);
    provider.acts.push(BUSY, { ...BUSY, after: 7_000 }, BUSY);
    const error = await failure(deliver());
    assert.equal(error.type, 'NotTaken');
    assert.equal(error.message, '3 of 3 emails were not taken. busy now');
    assert.equal(error.nextRetryDelay, 7_000);
    assert.deepEqual(await left(), []);
    assert.deepEqual((await deliver()).counts, { sent: members.length });
  });

  test('many that were not taken stay together although others were taken', async () => {
    const { deliver, provider, left } = await group(30);
    provider.acts.push(...Array.from({ length: 21 }, () => BUSY));
    assert.match((await failure(deliver())).message, /^21 of 30 /);
    assert.deepEqual(await left(), []);
    assert.deepEqual((await deliver()).counts, { sent: 30 });
  });

  test('what was refused only together leaves, however many', async () => {
    const { deliver, provider, left } = await group(30);
    provider.acts.push(...Array.from({ length: 30 }, () => ({ ...BUSY, alone: true as const })));
    assert.deepEqual((await deliver()).counts, { left: 30 });
    assert.equal((await left()).length, 30);
  });

  test('a provider that takes nobody is not asked to take the rest', async () => {
    const { deliver, provider, outcomes, members } = await group(30);
    provider.callSize = 10;
    provider.acts.push(...Array.from({ length: 10 }, () => BUSY));
    assert.match((await failure(deliver())).message, /^30 of 30 /);
    assert.equal(provider.calls.length, 1);
    assert.deepEqual(await outcomes(members[29]?.id ?? ''), []);
  });

  test('a refusal for good ends one and no other', async () => {
    const { deliver, provider, members, email } = await group(3);
    provider.acts.push({ kind: 'sent', messageId: 'a' }, { kind: 'rejected', detail: 'Not this one.' });
    assert.deepEqual((await deliver()).counts, { sent: 2, rejected: 1 });
    assert.equal((await email(members[1]?.id ?? '')).error, 'Not this one.');
  });

  test('after a crash in the middle of a call, one question tells what the provider has', async () => {
    const { deliver, provider, members, age, id } = await group(4);
    await pool.query(
      `INSERT INTO attempts (message_id, n, call, provider) SELECT id, 1, $2, 'postmark' FROM unnest($1::text[]) AS m(id)`,
      [members.map((member) => member.id), `call of ${id}`],
    );
    for (const member of members.slice(0, 3)) provider.take(member, `call of ${id}`);
    for (const member of members) await age(member.id, 120);
    assert.deepEqual((await deliver()).counts, { left: 1, sent: 3 });
    assert.equal(provider.asked, 1);
    assert.equal(provider.calls.length, 0);
  });

  test('leaves alone who was moved or canceled, and says who is not due yet', async () => {
    const { deliver, members, provider, email } = await group(4, { scheduled_at: inMs(60_000) });
    const [moved, canceled] = members.map((member) => member.id) as [string, string];
    await projectReschedule(pool, orgId, moved, inMs(120_000));
    await pool.query(`UPDATE emails SET status = 'canceled' WHERE id = $1`, [canceled]);
    const { counts, early } = await deliver();
    assert.deepEqual(counts, { scheduled: 1, canceled: 1 });
    assert.deepEqual(early?.members, members.slice(2));
    assert.ok(early.inMs > 30_000 && early.inMs <= 60_000);
    assert.equal(provider.calls.length, 0);
    assert.equal((await email(moved)).status, 'scheduled');
  });
});

describe('ending a group', () => {
  test('whose version is ahead of Postgres is told the version that Postgres has', async () => {
    const { deliver, members } = await group(2, { scheduled_at: inMs(60_000) });
    const { early } = await deliver(members.map((member) => ({ ...member, version: 7 })));
    assert.deepEqual(early?.members, members);
  });

  test('giving up fails those without attempts left and no other', async () => {
    const { deliver, giveUp, provider, members, statuses, email } = await group(3);
    provider.acts.push(BUSY, BUSY, BUSY);
    await failure(deliver());
    await giveUp(2);
    assert.deepEqual(await statuses(), ['queued', 'queued', 'queued']);
    await giveUp(1);
    assert.deepEqual(await statuses(), ['failed', 'failed', 'failed']);
    assert.equal((await email(members[0]?.id ?? '')).error, 'busy now Given up after 1 attempts.');
  });

  test('a cancellation ends what is scheduled and still its own', async () => {
    const { cancel, members, statuses } = await group(3, { scheduled_at: inMs(60_000) });
    await projectReschedule(pool, orgId, members[0]?.id ?? '', inMs(120_000));
    await cancel();
    assert.deepEqual(await statuses(), ['scheduled', 'canceled', 'canceled']);
  });
});
