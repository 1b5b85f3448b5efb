import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { describe, test, type TestContext } from 'node:test';
import { persist } from '../../src/delivery/persist.ts';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { isUnreachable, makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { organization } from '../store/mail.ts';
import { databaseProxy, type Proxy } from '../store/proxy.ts';
import { office, ScriptedProvider } from './office.ts';

const gone = () => Object.assign(new Error('terminating connection'), { code: '57P01' });

describe('writing down what only we know', () => {
  test('is tried until the database takes it', async () => {
    let tries = 0;
    await persist(async () => {
      if (++tries < 4) throw gone();
    });
    assert.equal(tries, 4);
  });

  test('is not tried again when the database will never take it', async () => {
    let tries = 0;
    await assert.rejects(
      persist(async () => {
        tries++;
        throw Object.assign(new Error('no'), { code: '23514' });
      }),
      { message: 'no' },
    );
    assert.equal(tries, 1);
  });

  test('is given up before the activity’s own time is over', async (t) => {
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    let tries = 0;
    await assert.rejects(
      persist(async () => {
        tries++;
        now += 40_000;
        throw gone();
      }),
      isUnreachable,
    );
    assert.equal(tries, 2);
  });
});

const database = await useDatabase();
const orgId = await organization(database.pool);

describe('a database that goes away while an email is handed over', () => {
  /** An office whose way to the database can be broken. */
  async function make(t: TestContext) {
    const proxy = await databaseProxy(database.url);
    const pool = makePool(proxy.url, 'test', 3, () => undefined);
    t.after(async () => {
      await pool.end();
      await proxy.close();
    });
    const provider = new ScriptedProvider();
    // What is read is read by the straight way.
    const { accept, email, timeline, outcomes } = office(database.pool, orgId, [provider]);
    return {
      proxy,
      pool,
      provider,
      accept,
      email,
      timeline,
      outcomes,
      deliverOne: office(pool, orgId, [provider]).deliverOne,
    };
  }

  const breaks: Readonly<Record<string, (proxy: Proxy, pool: Pool) => Promise<void> | void>> = {
    'is back after a while': async (proxy) => {
      await proxy.close();
      setTimeout(() => void proxy.open(), 700);
    },
    'cuts all connections': (proxy) => proxy.cut(),
    'ends all connections': async () => {
      await database.pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      );
    },
    'commits, and the answer is lost': (proxy) => proxy.loseNextCommit(),
  };
  const outcomes: [SendOutcome | undefined, string, string][] = [
    [undefined, 'sent', 'sent'],
    [{ kind: 'rejected', detail: 'no' }, 'rejected', 'refused'],
    [{ kind: 'bounced', reason: 'mailbox_full', detail: 'no' }, 'bounced', 'refused'],
    [{ kind: 'busy', detail: 'later' }, 'queued', 'again'],
  ];

  for (const [how, happen] of Object.entries(breaks))
    for (const [outcome, status, attempt] of outcomes)
      test(`and ${how} still gets to know that it is ${outcome?.kind ?? 'sent'}, once`, async (t) => {
        const set = await make(t);
        const member = await set.accept();
        set.provider.acts.push(async (mail, call) => {
          const said = outcome ?? set.provider.take(mail, call);
          await happen(set.proxy, set.pool);
          return said;
        });
        const result = await set.deliverOne(member);
        assert.equal(result.state, status === 'queued' ? 'again' : 'ended');
        assert.equal((await set.email(member.id)).status, status);
        assert.deepEqual(await set.outcomes(member.id), [attempt]);
        assert.deepEqual(await set.timeline(member.id), status === 'queued' ? ['queued'] : ['queued', status]);
        assert.equal(set.provider.calls.length, 1);
      });

  test('and was away before the claim has sent nothing', async (t) => {
    const set = await make(t);
    const member = await set.accept();
    await set.proxy.close();
    await assert.rejects(set.deliverOne(member), isUnreachable);
    await set.proxy.open();
    assert.deepEqual([set.provider.calls, await set.outcomes(member.id)], [[], []]);
    assert.equal((await set.deliverOne(member)).state, 'ended');
  });

  test('and loses the answer to the claim has sent nothing, and asks before it sends', async (t) => {
    const set = await make(t);
    const member = await set.accept();
    set.proxy.loseNextCommit();
    await assert.rejects(set.deliverOne(member), isUnreachable);
    assert.deepEqual([set.provider.calls, await set.outcomes(member.id)], [[], [null]]);
    assert.equal((await set.deliverOne(member)).state, 'again');
    assert.equal(set.provider.asked, 1);
  });
});
