import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type {} from '../../activities/index.ts';
import type { Drained } from '../../src/delivery/webhooks/contract.ts';
import { wake, webhookEndpoint } from '../../workflows/index.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, makeRounds, near } from './rounds.ts';

const HOUR = 3_600_000;
const AGAIN: Drained = { state: 'again' };
const CLOSED: Drained = { state: 'closed' };
const asleep = (inMs: number | null): Drained => ({ state: 'asleep', inMs });

describe('webhookEndpoint', () => {
  const { carry, lastLength } = makeRounds<Drained>({
    workflow: webhookEndpoint,
    activity: 'drainEndpoint',
    taskQueue: 'webhooks',
    prefix: 'wh',
    closed: CLOSED,
  });

  test('works until nothing is due, then when the next is due, and ends with its endpoint', async (t) => {
    const times = await carry(t.name, [AGAIN, AGAIN, asleep(5_000), asleep(20 * HOUR)]);
    assert.equal(times.length, 5);
    near(times[2], 0);
    near(times[3], 5_000);
    near(times[4], 20 * HOUR + 5_000);
  });

  test('ignores the payload of its signal', async (t) => {
    const times = await carry(t.name, [asleep(null)], async (handle, seen) => {
      await eventually('it has worked', () => seen.length === 1);
      await handle.signal<[unknown]>('wake', null);
    });
    assert.equal(times.length, 2);
  });

  test('a wake ends its sleep, however long that was meant to be', async (t) => {
    for (const inMs of [null, 24 * HOUR]) {
      const name = inMs === null ? t.name : `${t.name} and something is due later`;
      const times = await carry(name, [asleep(inMs)], async (handle, seen) => {
        await eventually('it has worked', () => seen.length === 1);
        await handle.signal(wake);
      });
      assert.equal(times.length, 2);
      near(times[1], 0);
    }
  });

  test('a wake that comes while it works is not slept over', async (t) => {
    const late: Answer<Drained> = async (handle) => {
      await handle.signal(wake);
      return asleep(null);
    };
    const times = await carry(t.name, [late]);
    assert.equal(times.length, 2);
  });

  test('a wake that comes while it finds its endpoint disabled makes it look once more', async (t) => {
    const enabled: Answer<Drained> = async (handle) => {
      await handle.signal(wake);
      return CLOSED;
    };
    assert.equal((await carry(t.name, [enabled, asleep(1_000)])).length, 3);
  });

  test('while the database is away it tries again', async (t) => {
    const times = await carry(t.name, ['crash', 'crash', 'crash', asleep(1_000)]);
    assert.equal(times.length, 5);
  });

  test('begins anew after 200 rounds, so that its history stays short', async () => {
    const times = await carry(
      'begins anew',
      Array.from({ length: 205 }, () => AGAIN),
      undefined,
      10,
    );
    assert.equal(times.length, 206);
    const length = await lastLength();
    assert.ok(length < 100, `${length} events`);
  });
});
