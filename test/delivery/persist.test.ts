import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { describe, test, type TestContext } from 'node:test';
import { persist } from '../../src/delivery/persist.ts';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { isUnreachable, type Pool } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { organization } from '../store/mail.ts';
import { type Proxy, proxiedPool } from '../store/proxy.ts';
import { harness, ScriptedProvider } from './harness.ts';

const database = await useDatabase();
const orgId = await organization(database.pool);

const gone = () => Object.assign(new Error('terminating connection'), { code: '57P01' });

describe('persist', () => {
  test('retries until the database accepts the write', async () => {
    let tries = 0;
    await persist(async () => {
      if (++tries < 4) throw gone();
    });
    assert.equal(tries, 4);
  });

  test('retries while the certificate of the database has expired', async () => {
    let tries = 0;
    await persist(async () => {
      if (++tries < 3) throw Object.assign(new Error('certificate has expired'), { code: 'CERT_HAS_EXPIRED' });
    });
    assert.equal(tries, 3);
  });

  test('does not retry a permanent error', async () => {
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

  test('gives up before the timeout of the activity', async (t) => {
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

describe('when the database breaks during a provider call and', () => {
  /** A harness with a proxy to the database. */
  async function make(t: TestContext) {
    const { proxy, pool } = await proxiedPool(t, database.url, 3);
    const provider = new ScriptedProvider();
    const { deliverOne } = harness(pool, orgId, [provider]);
    // Reads do not use the proxy.
    return { ...harness(database.pool, orgId, [provider]), proxy, pool, provider, deliverOne };
  }

  const breaks: Readonly<Record<string, (proxy: Proxy, pool: Pool) => Promise<void> | void>> = {
    'returns after a while': async (proxy) => {
      await proxy.close();
      setTimeout(() => void proxy.open(), 700);
    },
    'cuts all connections': (proxy) => proxy.cut(),
    'ends all connections': async () => {
      await database.pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      );
    },
    'loses the answer to a commit': (proxy) => proxy.loseNextCommit(),
  };
  const outcomes: [SendOutcome | undefined, string, string][] = [
    [undefined, 'sent', 'sent'],
    [{ kind: 'bounced', reason: 'mailbox_full', detail: 'no' }, 'bounced', 'refused'],
    [{ kind: 'busy', detail: 'later' }, 'queued', 'again'],
  ];

  for (const [how, happen] of Object.entries(breaks))
    for (const [outcome, status, attempt] of outcomes)
      test(`${how}: the outcome ${outcome?.kind ?? 'sent'} is recorded once`, async (t) => {
        const set = await make(t);
        const member = await set.accept();
        set.provider.acts.push(async (mail, call) => {
          const result = outcome ?? set.provider.take(mail, call);
          await happen(set.proxy, set.pool);
          return result;
        });
        const result = await set.deliverOne(member);
        assert.equal(result.state, status === 'queued' ? 'again' : 'ended');
        assert.equal((await set.email(member.id)).status, status);
        assert.deepEqual(await set.outcomes(member.id), [attempt]);
        assert.deepEqual(await set.timeline(member.id), status === 'queued' ? ['queued'] : ['queued', status]);
        assert.equal(set.provider.calls.length, 1);
      });

  test('was unreachable before the claim: nothing is sent', async (t) => {
    const set = await make(t);
    const member = await set.accept();
    await set.proxy.close();
    await assert.rejects(set.deliverOne(member), isUnreachable);
    await set.proxy.open();
    assert.deepEqual([set.provider.calls, await set.outcomes(member.id)], [[], []]);
    assert.equal((await set.deliverOne(member)).state, 'ended');
  });

  test('loses the answer to the claim: nothing is sent, and the provider is asked first', async (t) => {
    const set = await make(t);
    const member = await set.accept();
    set.proxy.loseNextCommit();
    await assert.rejects(set.deliverOne(member), isUnreachable);
    assert.deepEqual([set.provider.calls, await set.outcomes(member.id)], [[], [null]]);
    assert.equal((await set.deliverOne(member)).state, 'again');
    assert.equal(set.provider.asked, 1);
  });
});
