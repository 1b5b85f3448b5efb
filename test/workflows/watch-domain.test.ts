import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type {} from '../../activities/index.ts';
import type { Watched } from '../../activities/domains.ts';
import { lookAgain, watchDomain } from '../../workflows/index.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, makeRounds, near } from './rounds.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const CLOSED: Watched = { state: 'closed' };
const asleep = (inMs: number): Watched => ({ state: 'asleep', inMs });

describe('watchDomain', () => {
  const { carry, lastLength } = makeRounds<Watched>({
    workflow: watchDomain,
    activity: 'watchDomain',
    taskQueue: 'domains',
    prefix: 'dm',
    closed: CLOSED,
  });

  test('looks whenever it is due, and ends when the domain is not to be watched any more', async (t) => {
    const times = await carry(t.name, [asleep(MINUTE), asleep(2 * MINUTE), asleep(6 * HOUR), asleep(24 * HOUR)]);
    assert.equal(times.length, 5);
    near(times[1], MINUTE);
    near(times[2], 3 * MINUTE);
    near(times[3], 6 * HOUR + 3 * MINUTE);
    near(times[4], 30 * HOUR + 3 * MINUTE);
  });

  test('looks at once when it is told to', async (t) => {
    const times = await carry(t.name, [asleep(24 * HOUR)], async (handle, seen) => {
      await eventually('it has looked', () => seen.length === 1);
      await handle.signal(lookAgain);
    });
    assert.equal(times.length, 2);
    near(times[1], 0);
  });

  test('told while it looks, it looks once more', async (t) => {
    const late: Answer<Watched> = async (handle) => {
      await handle.signal(lookAgain);
      return asleep(24 * HOUR);
    };
    const times = await carry(t.name, [late]);
    assert.equal(times.length, 2);
    near(times[1], 0);
  });

  test('told that the domain begins anew while it finds that it has failed, it goes on', async (t) => {
    const begun: Answer<Watched> = async (handle) => {
      await handle.signal(lookAgain);
      return CLOSED;
    };
    assert.equal((await carry(t.name, [begun, asleep(MINUTE)])).length, 3);
  });

  test('pauses between rounds while Postgres answers that it is due now', async (t) => {
    const times = await carry(t.name, [asleep(0), asleep(0), asleep(0)]);
    assert.equal(times.length, 4);
    assert.ok((times[3] ?? 0) >= 15_000, `three rounds in ${times[3]} ms`);
  });

  test('ignores the payload of its signal', async (t) => {
    const times = await carry(t.name, [asleep(24 * HOUR)], async (handle, seen) => {
      await eventually('it has looked', () => seen.length === 1);
      await handle.signal<[unknown]>('lookAgain', null);
    });
    assert.equal(times.length, 2);
  });

  test('while the database is away it tries again', async (t) => {
    assert.equal((await carry(t.name, ['crash', 'crash', 'crash', asleep(MINUTE)])).length, 5);
  });

  test('begins anew after 200 rounds, so that its history stays short', async () => {
    const days = Array.from({ length: 205 }, () => asleep(24 * HOUR));
    const times = await carry('begins anew', days, undefined, 10);
    assert.equal(times.length, 206);
    near(times[205], 205 * 24 * HOUR);
    const length = await lastLength();
    assert.ok(length < 100, `${length} events`);
  });
});
