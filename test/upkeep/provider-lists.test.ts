import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { pino } from 'pino';
import { makeProviderListUpkeep } from '../../src/upkeep/provider-lists.ts';
import { newId } from '../../src/lib/ids.ts';
import type { SuppressionOrigin } from '../../src/domain/email/suppression.ts';
import { suppress, unsuppress } from '../../src/accounts/suppressions.ts';
import { enqueueProviderRemovals, dueProviderRemovals } from '../../src/store/suppressions/provider-lists.ts';
import { addSuppressions } from '../../src/store/suppressions/suppressions.ts';
import { organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { assertRemaining } from '../support/remaining.ts';

const { pool } = await useDatabase(5);
const deps = { pool, wakeRelay: () => undefined };
const ours = await organization(pool);
const theirs = await organization(pool, 'others.example');
beforeEach(async () => {
  await pool.query('TRUNCATE provider_list_removals, outbox, suppressions');
});

let count = 0;
const address = () => `person${++count}@example.net`;

async function put(orgId: string, email: string, origin: SuppressionOrigin): Promise<string> {
  const id = newId('sup');
  await addSuppressions(pool, [{ id, org_id: orgId, email, origin }]);
  return id;
}

/** Puts a new address on the list of `ours` and removes it again. @returns the address */
async function putAndRemove(origin: SuppressionOrigin = 'bounce'): Promise<string> {
  const email = address();
  await put(ours, email, origin);
  await unsuppress(deps, ours, email);
  return email;
}

/** The maintenance task with a fake provider, and the addresses that were removed from it. */
function task(answer: (address: string) => Promise<boolean> = () => Promise.resolve(true)) {
  const asked: string[] = [];
  const removeFromProvider = (email: string) => {
    asked.push(email);
    return answer(email);
  };
  const tasks = makeProviderListUpkeep({ pool, removeFromProvider, log: pino({ level: 'silent' }) });
  return { asked, clear: () => tasks.clearProviderLists() };
}
const pending = async () => {
  const { rows } = await pool.query<{ email: string; tries: number; wait: number }>(
    `SELECT email, tries, extract(epoch FROM retry_at - now())::float8 AS wait FROM provider_list_removals ORDER BY id`,
  );
  return rows;
};

describe('an address that is removed from a suppression list', () => {
  test('9.4: is removed from the list of the provider too, and the relay is woken', async () => {
    for (const origin of ['bounce', 'complaint', 'provider', 'manual', 'unsubscribe'] as const) {
      await pool.query('DELETE FROM outbox');
      const email = await putAndRemove(origin);
      const { rows } = await pool.query('SELECT action, message_id FROM outbox');
      assert.deepEqual(rows, [{ action: 'chore', message_id: 'clearProviderLists' }], origin);
      const { asked, clear } = task();
      assert.deepEqual(await clear(), { done: 1, next: null });
      assert.deepEqual(asked, [email]);
      assert.deepEqual(await clear(), { done: 0, next: null });
    }
  });

  test('does not wait for all those of another organization', async () => {
    const many = Array.from({ length: 700 }, address);
    await enqueueProviderRemovals(pool, ours, many);
    const email = address();
    await enqueueProviderRemovals(pool, theirs, [email]);
    // The column rounds its time up to half a millisecond.
    await pool.query(`UPDATE provider_list_removals SET retry_at = now() - interval '1 second'`);
    const removals = await dueProviderRemovals(pool, 50);
    assert.equal(removals.length, 50);
    assert.ok(removals.some((removal) => removal.email === email));
  });

  test('stays on it while its organization has another entry for all mail', async () => {
    const email = address();
    const unsubscribed = await put(ours, email, 'unsubscribe');
    const bounced = await put(ours, email, 'bounce');
    await unsuppress(deps, ours, unsubscribed);
    assert.deepEqual(await pending(), []);
    assert.equal((await pool.query('SELECT FROM outbox')).rowCount, 0);
    await unsuppress(deps, ours, bounced);
    assert.equal((await pending()).length, 1);
  });

  test('stays on it while another organization has an entry by a report of the provider', async () => {
    for (const [origin, stays] of [
      ['bounce', true],
      ['complaint', true],
      ['provider', true],
      ['manual', false],
      ['unsubscribe', false],
    ] as const) {
      const email = address();
      await put(ours, email, 'bounce');
      await put(theirs, email, origin);
      await unsuppress(deps, ours, email);
      const { asked, clear } = task();
      await clear();
      assert.deepEqual(asked, stays ? [] : [email], origin);
      assert.deepEqual(await pending(), []);
      await unsuppress(deps, theirs, email);
      await clear();
      assert.equal(asked.at(-1), email, origin);
    }
  });

  test('by both organizations concurrently is removed', async () => {
    const email = address();
    for (const orgId of [ours, theirs]) await put(orgId, email, 'bounce');
    await Promise.all([unsuppress(deps, ours, email), unsuppress(deps, theirs, email)]);
    const { asked, clear } = task();
    await clear();
    assert.deepEqual(new Set(asked), new Set([email]));
  });
});

describe('while the provider is unreachable', () => {
  test('no removal is lost, and retries become less frequent', async () => {
    const emails = [await putAndRemove(), await putAndRemove()];
    const away = task(() => Promise.reject(new Error('away')));
    assert.deepEqual(await away.clear(), { done: 0, next: null });
    assert.deepEqual(away.asked, [emails[0]], 'one failed request is enough');
    const [first, second] = await pending();
    assert.deepEqual([first?.tries, second?.tries], [1, 0]);
    assertRemaining(first && 1_000 * first.wait, 60_000);
    for (const [tries, wait] of [
      [1, 120],
      [8, 256 * 60],
      [9, 6 * 3_600],
      [1_000, 6 * 3_600],
    ] as const) {
      await pool.query(`UPDATE provider_list_removals SET retry_at = now() - interval '1 second', tries = $1`, [tries]);
      await away.clear();
      const [again] = await pending();
      assert.ok(again && Math.abs(again.wait - wait) < 30, `${tries}: ${again?.wait} s`);
    }
    await pool.query(`UPDATE provider_list_removals SET retry_at = now() - interval '1 second'`);
    const back = task();
    assert.deepEqual(await back.clear(), { done: 2, next: null });
    assert.deepEqual(back.asked, emails);
    assert.deepEqual(await pending(), []);
  });

  test('a removal that always fails does not block the others', async () => {
    const emails = [await putAndRemove(), await putAndRemove(), await putAndRemove()];
    const { asked, clear } = task((email) =>
      email === emails[0] ? Promise.reject(new Error('500')) : Promise.resolve(true),
    );
    await clear();
    assert.deepEqual(await clear(), { done: 2, next: null });
    assert.deepEqual(asked, emails);
  });

  test('a removal that is requested during the call is not lost', async () => {
    const email = await putAndRemove();
    const { asked, clear } = task(async () => {
      if (asked.length === 1) {
        await put(ours, email, 'bounce');
        await unsuppress(deps, ours, email);
      }
      return true;
    });
    await clear();
    assert.equal((await pending()).length, 1);
    await clear();
    assert.deepEqual(asked, [email, email]);
  });
});

test('an address that the provider keeps is not removed again', async () => {
  await putAndRemove('complaint');
  const { clear } = task(() => Promise.resolve(false));
  assert.deepEqual(await clear(), { done: 1, next: null });
  assert.deepEqual(await pending(), []);
});

test('without a provider list the requests are deleted', async () => {
  await putAndRemove();
  const log = pino({ level: 'silent' });
  const tasks = makeProviderListUpkeep({ pool, removeFromProvider: undefined, log });
  assert.deepEqual(await tasks.clearProviderLists(), { done: 1, next: null });
  assert.deepEqual(await pending(), []);
});

test('removes 50 addresses in a step', async () => {
  const emails = Array.from({ length: 120 }, address);
  await suppress(deps, ours, emails);
  for (const email of emails) await unsuppress(deps, ours, email);
  const { asked, clear } = task();
  assert.deepEqual(await clear(), { done: 50, next: '' });
  assert.deepEqual(await clear(), { done: 50, next: '' });
  assert.deepEqual(await clear(), { done: 20, next: null });
  assert.deepEqual(asked, emails);
});
