import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { MemberResult } from '../../src/delivery/contract.ts';
import type { Isolation } from '../../src/delivery/email/contract.ts';
import { deliverEmails } from '../../src/delivery/email/deliver.ts';
import { markSuspects, recordCrash } from '../../src/store/emails/suspects.ts';
import { messagesQuarantined } from '../../src/telemetry/topics.ts';
import { organizationFixture } from '../support/organization.ts';
import { harness, ScriptedProvider } from './harness.ts';

const { pool, orgId, url } = await organizationFixture(10);

const WORKER = fileURLToPath(new URL('killing-worker.ts', import.meta.url));

/** Has a worker process deliver emails once. @returns the results, or the signal that ended it */
async function runWorker(ids: readonly string[]): Promise<MemberResult[] | string> {
  const child = fork(WORKER, [url, orgId, ...ids], { execArgv: ['--import', 'tsx'] });
  let results: MemberResult[] | undefined;
  child.on('message', (message: { results: MemberResult[] }) => (results = message.results));
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  return results ?? signal ?? `exit code ${code}`;
}

describe('an email that ends the process that delivers it', () => {
  test('ends one worker, is quarantined, and all others of its call are sent', async () => {
    const { acceptMany, email, outcomes } = harness(pool, orgId, []);
    const members = await acceptMany(12, (i) => ({ subject: i === 5 ? 'poison' : 'Hello' }));
    const ids = members.map(({ id }) => id);
    const poison = ids[5] as string;
    const others = ids.filter((id) => id !== poison);

    assert.equal(await runWorker(ids), 'SIGKILL');
    // From here on it ends isolated processes, and the worker survives. On a busy machine more rounds are needed.
    const statuses = () => Promise.all(ids.map(async (id) => (await email(id)).status));
    for (let round = 0; round < 20 && (await statuses()).includes('queued'); round++) {
      const results = await runWorker(ids);
      assert.notEqual(results, 'SIGKILL');
    }
    for (const id of others) assert.equal((await email(id)).status, 'sent');
    // One that was in flight when an isolated process ended was sent by a later attempt.
    for (const id of others) assert.match((await outcomes(id)).join(), /^(lost,)+sent$/);
    const { status, error } = await email(poison);
    assert.equal(status, 'failed');
    assert.match(error ?? '', /^Quarantined: delivering this email ended a worker process twice; /);
    // On a busy machine a process may also be ended as hanging before it has begun the email.
    const lost = await outcomes(poison);
    assert.ok(lost.length >= 3 && lost.every((outcome) => outcome === 'lost'), lost.join());
  });
});

/** A harness with an isolated process that answers as given. */
function make(answer: Awaited<ReturnType<Isolation['deliver']>> | 'deliver', canBeAsked = true) {
  const provider = new ScriptedProvider(canBeAsked ? 'postmark' : 'smtp', canBeAsked);
  const isolatedIds: string[] = [];
  const inside = harness(pool, orgId, [provider], { confirmNotFoundAfterMs: -1 });
  const isolation: Isolation = {
    deliver: async (member) => {
      isolatedIds.push(member.id);
      return answer === 'deliver' ? inside.deliverOne(member) : answer;
    },
  };
  return { provider, isolatedIds, ...harness(pool, orgId, [provider], { confirmNotFoundAfterMs: -1, isolation }) };
}

const crashesOf = async (id: string): Promise<unknown> => {
  const { rows } = await pool.query('SELECT crashes, suspected_at IS NOT NULL AS suspect FROM emails WHERE id = $1', [
    id,
  ]);
  return rows[0];
};

describe('an attempt without an outcome', () => {
  test('is searched first, and an email that the provider has is not delivered again', async () => {
    const { provider, accept, die, deliverOne, isolatedIds } = make('deliver');
    const member = await accept();
    await die(member, provider, 'call_taken', true);
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.deepEqual([isolatedIds, provider.took.length], [[], 1]);
  });

  test('makes suspects, which are delivered one by one after all others', async () => {
    const { provider, acceptMany, die, deliver, isolatedIds } = make('deliver');
    const members = await acceptMany(5);
    const suspects = members.slice(0, 3);
    for (const member of suspects) await die(member, provider, 'call_lost', false);
    provider.calls.length = 0;
    const results = await deliver(...members);
    assert.deepEqual(new Set(results.map((result) => 'status' in result && result.status)), new Set(['sent']));
    assert.deepEqual(isolatedIds.toSorted(), suspects.map(({ id }) => id).toSorted());
    assert.deepEqual(provider.callSizes, [2, 1, 1, 1]);
  });

  test('does not make a suspect when the provider did not answer', async () => {
    const { provider, accept, deliverOne, isolatedIds } = make('deliver');
    const member = await accept();
    provider.acts.push({ kind: 'unknown', detail: 'silence' });
    assert.equal((await deliverOne(member)).state, 'again');
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.deepEqual(isolatedIds, []);
  });
});

describe('a suspect', () => {
  test('is no longer one after it reached a provider', async () => {
    const { provider, accept, deliverOne, isolatedIds } = make('deliver');
    const member = await accept();
    await markSuspects(pool, [member.id]);
    provider.acts.push({ kind: 'busy', detail: '503' });
    assert.equal((await deliverOne(member)).state, 'again');
    assert.deepEqual(await crashesOf(member.id), { crashes: 0, suspect: false });
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.equal(isolatedIds.length, 1);
  });

  for (const [answer, crashes] of [
    ['busy', 0],
    ['ended', 0],
    ['crashed', 1],
  ] as const) {
    test(`is tried again soon, without an attempt, when its process was ${answer}`, async () => {
      const { acceptMany, deliver, isolatedIds, attempts } = make(answer);
      const members = await acceptMany(12);
      await markSuspects(
        pool,
        members.map(({ id }) => id),
      );
      const results = await deliver(...members);
      assert.ok(
        results.every((result) => result.state === 'again' && result.postponed && (result.afterMs ?? 0) <= 6_000),
      );
      // Those that come after do not wait too when the process is busy.
      assert.equal(isolatedIds.length, answer === 'busy' ? 10 : 12);
      assert.deepEqual(await crashesOf(members[0]?.id ?? ''), { crashes, suspect: true });
      assert.deepEqual(await attempts(members[0]?.id ?? ''), []);
    });
  }

  test('has one crash if it is unknown whether that was recorded', async () => {
    const { accept, deps } = make('crashed');
    const member = await accept();
    await markSuspects(pool, [member.id]);
    let lost = 0;
    const query = async (statement: string, values: unknown[]) => {
      const result = await pool.query(statement, values);
      if (statement.includes('crashes = ') && lost++ === 0) throw new Error('Connection terminated unexpectedly');
      return result;
    };
    const unreliable = Object.assign(Object.create(pool) as typeof pool, { query });
    await deliverEmails({ ...deps, pool: unreliable }, [member]);
    assert.deepEqual([lost, await crashesOf(member.id)], [2, { crashes: 1, suspect: true }]);
  });

  test('fails after it ended two processes, with the reason, a log line and a metric', async (t) => {
    const { provider, accept, deliverOne, email, lines } = make('deliver');
    const member = await accept();
    await recordCrash(pool, member.id, 2);
    let count = 0;
    t.after(messagesQuarantined.listen((news) => (count += news.count)));
    assert.deepEqual(await deliverOne(member), { id: member.id, state: 'ended', status: 'failed' });
    assert.match((await email(member.id)).error ?? '', /^Quarantined: /);
    assert.deepEqual([count, provider.calls], [1, []]);
    assert.ok(lines.some((line) => line.includes('"email quarantined"') && line.includes(member.id)));
  });

  test('is searched at its provider before it is quarantined, if that can be asked', async () => {
    for (const canBeAsked of [true, false]) {
      const { provider, accept, die, deliverOne } = make('deliver', canBeAsked);
      const member = await accept();
      await recordCrash(pool, member.id, 2);
      await die(member, provider, `call_${canBeAsked}`, true);
      const result = await deliverOne(member);
      assert.equal(result.state === 'ended' && result.status, canBeAsked ? 'sent' : 'failed');
    }
  });
});

test('a large email whose content ended its worker before there was an attempt is a suspect', async () => {
  const { accept, deps, deliverOne, attempts } = make('busy');
  const member = await accept({ text: 'x'.repeat(100_000) });
  const { largeEmails } = deps;
  const dying = harness(pool, orgId, deps.providers as ScriptedProvider[], {
    largeEmails: { use: (emails) => largeEmails.use(emails, () => Promise.reject(new Error('out of memory'))) },
  });
  await assert.rejects(dying.deliverOne(member), /out of memory/);
  assert.deepEqual(await crashesOf(member.id), { crashes: 0, suspect: true });
  assert.equal((await deliverOne(member)).state, 'again');
  assert.deepEqual(await attempts(member.id), []);
});

test('a large email that waits for its provider is no suspect', async (t) => {
  const { provider, accept, deliverOne, isolatedIds } = make('busy');
  const member = await accept({ text: 'x'.repeat(100_000) });
  t.after(() => pool.query('DELETE FROM provider_pauses'));
  await pool.query(
    `INSERT INTO provider_pauses (provider, sender, reason, opened_at, next_probe_at)
     VALUES ($1, '', 'paused', now(), now() + interval '1 hour')`,
    [provider.name],
  );
  for (let attempt = 0; attempt < 2; attempt++) {
    const result = await deliverOne(member);
    assert.match(result.state === 'again' ? result.reason : result.state, /paused/);
    assert.deepEqual(await crashesOf(member.id), { crashes: 0, suspect: false });
  }
  assert.deepEqual(isolatedIds, []);
});
