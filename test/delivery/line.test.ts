import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeProviderLine, type LineCall, type ProviderLine } from '../../src/delivery/line.ts';
import { eventually } from '../support/eventually.ts';

const SMTP = { name: 'smtp', connections: { usual: 12, late: 6 } };

/** Calls that end when the test says so. */
function hangingCalls(line: ProviderLine, more: Partial<LineCall> = {}) {
  const ends: (() => void)[] = [];
  const results: Promise<string | undefined>[] = [];
  let refused = 0;
  return {
    start(orgId: string, count = 1): void {
      for (let i = 0; i < count; i++) {
        const work = () => new Promise<string>((resolve) => ends.push(() => resolve('done')));
        const result = line.run({ provider: SMTP, orgId, isSingle: false, ...more }, work);
        results.push(result.finally(() => undefined));
        void result.then((value) => (refused += value === undefined ? 1 : 0));
      }
    },
    begun: () => ends.length,
    refused: () => refused,
    endOne: () => ends.shift()?.(),
    async endAll(): Promise<(string | undefined)[]> {
      ends.forEach((end) => end());
      return Promise.all(results);
    },
  };
}

describe('the line in front of a provider', { concurrency: true }, () => {
  test('gives one organization three quarters of the connections, and the next one the rest immediately', async () => {
    const calls = hangingCalls(makeProviderLine({ stalledAfterMs: 50 }));
    calls.start('b', 12);
    assert.equal(calls.begun(), 9);
    calls.start('a', 4);
    assert.equal(calls.begun(), 12);
    await eventually('the others stop waiting', () => calls.refused() === 4);
    assert.equal((await calls.endAll()).filter((result) => result === 'done').length, 12);
  });

  test('gives one organization a third of the connections beside others', async () => {
    const calls = hangingCalls(makeProviderLine({ stalledAfterMs: 50 }));
    calls.start('a', 1);
    calls.start('b', 12);
    assert.equal(calls.begun(), 1 + 4);
    await eventually('the others stop waiting', () => calls.refused() === 8);
    await calls.endAll();
  });

  test('makes a call wait while calls of its organization end, and refuses it once none does', async () => {
    const line = makeProviderLine({ stalledAfterMs: 200, maxWaitMs: 60_000 });
    const calls = hangingCalls(line);
    calls.start('b', 14);
    assert.equal(line.stalledForMs({ provider: SMTP, orgId: 'b' }), 0);
    calls.endOne();
    await eventually('the next call begins', () => calls.begun() === 9);
    assert.equal(calls.refused(), 0);
    await eventually('the rest is refused', () => calls.refused() === 4);
    assert.ok(line.stalledForMs({ provider: SMTP, orgId: 'b' }) >= 200);
    assert.equal(line.stalledForMs({ provider: SMTP, orgId: 'a' }), 0);
    await calls.endAll();
    assert.equal(line.stalledForMs({ provider: SMTP, orgId: 'b' }), 0);
    assert.deepEqual(line.counts(), [{ provider: 'smtp', running: 0, late: 0, waiting: 0 }]);
  });

  test('lets at most 20 calls of one organization wait that each occupy an activity slot', async () => {
    const line = makeProviderLine({ stalledAfterMs: 60_000 });
    const calls = hangingCalls(line, { isSingle: true });
    calls.start('b', 9 + 25);
    await eventually('five are refused', () => calls.refused() === 5);
    assert.deepEqual(line.counts(), [{ provider: 'smtp', running: 9, late: 0, waiting: 20 }]);
    const timer = setInterval(() => calls.endOne(), 1);
    await eventually('all have ended', () => line.counts()[0]?.running === 0);
    clearInterval(timer);
  });

  test('moves late calls to late connections, with a share for each organization', async () => {
    const line = makeProviderLine({ lateAfterMs: 50 });
    let late = 0;
    const calls = hangingCalls(line, { isSingle: true, onLate: () => late++ });
    calls.start('b', 9);
    await eventually('all are late', () => late === 9);
    await eventually('a third of the late connections is used', () => line.counts()[0]?.late === 2);
    assert.deepEqual(line.counts(), [{ provider: 'smtp', running: 7, late: 2, waiting: 0 }]);
    await calls.endAll();
    assert.deepEqual(line.counts(), [{ provider: 'smtp', running: 0, late: 0, waiting: 0 }]);
  });

  test('reports an organization whose hanging calls would fill its share', async () => {
    let reports = 0;
    const line = makeProviderLine({ hangingAfterMs: 50 });
    const few = hangingCalls(line, { onHanging: () => reports++ });
    few.start('a', 3);
    const many = hangingCalls(line, { onHanging: () => (reports += 100) });
    many.start('b', 4);
    await eventually('it is reported', () => reports > 0);
    assert.equal(reports, 100);
    await Promise.all([few.endAll(), many.endAll()]);
  });

  test('waits for the calls that outlast their deliveries', async () => {
    const line = makeProviderLine();
    const calls = hangingCalls(line);
    calls.start('a');
    line.keep(calls.endAll());
    await line.end();
    assert.equal(line.counts()[0]?.running, 0);
  });
});
