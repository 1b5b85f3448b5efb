import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { makeDeadline } from '../../src/lib/deadline.ts';
import { untilAborted } from '../../src/lib/until-aborted.ts';

setFlagsFromString('--expose_gc');
const collectGarbage = runInNewContext('gc') as () => void;

test('a deadline aborts after its time, also if garbage was collected meanwhile', async () => {
  const aborted: Event[] = [];
  const watch = () => {
    makeDeadline(200, [new AbortController().signal]).addEventListener('abort', (event) => aborted.push(event));
  };
  watch();
  for (let round = 0; round < 500 && aborted.length === 0; round++) {
    collectGarbage();
    await sleep(20);
  }
  assert.equal(aborted.length, 1);
});

test('a deadline aborts with another signal before its time, and for the same reason', async () => {
  const caller = new AbortController();
  const signal = makeDeadline(60_000, [caller.signal]);
  const aborted = once(signal, 'abort');
  caller.abort(new Error('gone'));
  await aborted;
  await assert.rejects(untilAborted(new Promise(() => undefined), signal), { message: 'gone' });
});
