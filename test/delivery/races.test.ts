import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'node:test';
import { project, projectReschedule } from '../../src/projection/emails.ts';
import { insertOutbox } from '../../src/store/outbox/outbox.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { inMs } from '../store/mail.ts';
import { organizationFixture } from '../support/organization.ts';
import { harnessWithProvider } from './harness.ts';

/** The runs of each race, with different delays. */
const RUNS = 200;
/** The number of concurrent runs. */
const LANES = 4;

const { pool, orgId } = await organizationFixture(20);

/** A random delay of up to 4 ms, often none. */
const moment = () => sleep(Math.max(0, Math.random() * 8 - 4));

async function race(run: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      while (next < RUNS) await run(next++);
    }),
  );
}

const make = (canBeAsked = true) => harnessWithProvider(pool, orgId, {}, canBeAsked ? 'postmark' : 'smtp');

for (const canBeAsked of [true, false])
  test(`an email that several workers deliver concurrently is sent once (${canBeAsked ? 'asked' : 'not asked'})`, async () => {
    await race(async () => {
      const { provider, accept, deliverOne, outcomes, timeline, email } = make(canBeAsked);
      const member = await accept();
      provider.acts.push(async (mail, call) => {
        await moment();
        const outcome = provider.take(mail, call);
        await moment();
        return outcome;
      });
      const results = await Promise.all(
        [0, 1, 2].map(async () => {
          await moment();
          return deliverOne(member);
        }),
      );
      assert.equal(provider.took.length, 1);
      assert.ok(results.some((result) => result.state === 'ended' && result.status === 'sent'));
      assert.deepEqual(await outcomes(member.id), ['sent']);
      assert.deepEqual(await timeline(member.id), ['queued', 'sent']);
      assert.equal((await email(member.id)).status, 'sent');
    });
  });

for (const canBeAsked of [true, false])
  test(`a lost attempt that several workers find concurrently is repeated once (${canBeAsked ? 'asked' : 'not asked'})`, async () => {
    await race(async () => {
      const { provider, accept, deliverOne, die, age, outcomes, timeline } = make(canBeAsked);
      const member = await accept();
      await die(member, provider, 'call_1', false);
      if (canBeAsked) await deliverOne(member);
      await age(member.id, canBeAsked ? 61 : 721);
      const results = await Promise.all(
        [0, 1, 2].map(async () => {
          await moment();
          return deliverOne(member);
        }),
      );
      assert.equal(provider.took.length, 1);
      assert.ok(results.some(({ state }) => state === 'ended'));
      assert.deepEqual(await outcomes(member.id), [canBeAsked ? 'lost' : 'risked', 'sent']);
      assert.deepEqual(await timeline(member.id), ['queued', 'sent']);
    });
  });

test('a group that several workers deliver concurrently is sent once, and each worker gets all results', async () => {
  const { provider, acceptMany, deliver, timeline } = make();
  const members = await acceptMany(100);
  const results = await Promise.all([deliver(...members), deliver(...[...members].reverse()), deliver(...members)]);
  for (const each of results) assert.deepEqual(new Set(each.map(({ id }) => id)), new Set(members.map(({ id }) => id)));
  assert.equal(provider.took.length, 100);
  for (const { id } of members) assert.deepEqual(await timeline(id), ['queued', 'sent']);
});

describe('when an email becomes due at the moment at which', () => {
  /** The number of runs that the API won. */
  const won = { cancel: 0, reschedule: 0 };
  /** The head start of the other side in milliseconds: the side that wins starts later next time, on a machine of any speed. */
  const ahead = { api: 0, worker: 0 };

  function count(name: keyof typeof won, isWon: boolean): void {
    if (isWon) won[name]++;
    const [winner, loser] = isWon ? (['worker', 'api'] as const) : (['api', 'worker'] as const);
    ahead[winner] = ahead[winner] * 1.5 + 0.5;
    ahead[loser] = ahead[loser] / 2;
  }

  test('it is canceled, it is either canceled and never sent, or sent and the cancel refused', async () => {
    await race(async () => {
      const { provider, accept, deliverOne, email, timeline } = make();
      const member = await accept({ scheduled_at: inMs(60_000) });
      await pool.query(`UPDATE emails SET scheduled_at = now() WHERE id = $1`, [member.id]);
      const cancel = async () => {
        await sleep(ahead.worker);
        await moment();
        return transaction(pool, async (client) => {
          const changed = await project(client, 'canceled', [{ id: member.id }], orgId);
          await insertOutbox(client, 'cancel', changed);
          return changed.length === 1;
        });
      };
      const deliver = async () => {
        await sleep(ahead.api);
        await moment();
        return deliverOne(member);
      };
      const [canceled, result] = await Promise.all([cancel(), deliver()]);
      const status = canceled ? 'canceled' : 'sent';
      assert.equal(provider.took.length, canceled ? 0 : 1);
      assert.equal((await email(member.id)).status, status);
      assert.deepEqual(await timeline(member.id), ['scheduled', status]);
      assert.ok(result.state === 'ended' && result.status === status);
      count('cancel', canceled);
    });
  });

  test('it is rescheduled, it either waits for its new time, or is sent and the reschedule refused', async () => {
    await race(async () => {
      const { provider, accept, deliverOne, email, timeline } = make();
      const member = await accept({ scheduled_at: inMs(60_000) });
      await pool.query(`UPDATE emails SET scheduled_at = now() WHERE id = $1`, [member.id]);
      const later = inMs(3_600_000);
      const move = async () => {
        await sleep(ahead.worker);
        await moment();
        return (await projectReschedule(pool, orgId, member.id, later)) !== undefined;
      };
      const deliver = async () => {
        await sleep(ahead.api);
        await moment();
        return deliverOne(member);
      };
      const [moved, result] = await Promise.all([move(), deliver()]);
      assert.equal(provider.took.length, moved ? 0 : 1);
      const row = await email(member.id);
      assert.deepEqual([row.status, row.schedule_version], moved ? ['scheduled', 1] : ['sent', 0]);
      assert.deepEqual(await timeline(member.id), ['scheduled', moved ? 'rescheduled' : 'sent']);
      if (moved) assert.ok(result.state === 'waiting' && result.version === 1 && result.dueAt === later);
      else assert.ok(result.state === 'ended' && result.status === 'sent');
      count('reschedule', moved);
    });
  });

  test('each side has won some of these runs', () => {
    for (const [name, wins] of Object.entries(won))
      assert.ok(wins > 0 && wins < RUNS, `${name} won ${wins} of ${RUNS}`);
  });
});

test('a report that arrives before the outcome is recorded loses neither', async () => {
  await race(async () => {
    const { provider, accept, deliverOne, email, timeline } = make();
    const member = await accept();
    let report: Promise<unknown> = Promise.resolve();
    provider.acts.push((mail, call) => {
      const outcome = provider.take(mail, call);
      report = moment().then(() => project(pool, 'delivered', [{ id: mail.id, dedupe_key: 'Delivery 1' }]));
      return outcome;
    });
    await deliverOne(member);
    await report;
    const row = await email(member.id);
    assert.deepEqual([row.status, row.provider_message_id], ['delivered', 'postmark 1']);
    assert.deepEqual((await timeline(member.id)).sort(), ['delivered', 'queued', 'sent']);
  });
});
