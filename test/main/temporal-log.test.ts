import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { Runtime } from '@temporalio/worker';
import { makeLog } from '../../src/main/process.ts';
import { installTemporal } from '../../src/main/wiring/temporal.ts';

test('a failed activity is logged with its error and without the row that Postgres quotes', () => {
  let written = '';
  const lines = new Writable({
    write(chunk: Buffer, _encoding, done) {
      written += chunk.toString();
      done();
    },
  });
  installTemporal(makeLog('worker', 'trace', lines));
  const error = Object.assign(new Error('new row violates check constraint "unlucky"'), {
    code: '23514',
    detail: 'Failing row contains (em_1, canary@example.net).',
    where: 'unnamed portal parameter $1 = canary@example.net',
  });
  const { logger } = Runtime.instance();
  logger.warn('Activity failed', { error, durationMs: 5 });
  logger.log('ERROR', 'Activity failed', { error });
  assert.equal(written.split('\n').length, 3, written);
  assert.doesNotMatch(written, /canary/);
  for (const line of written.trim().split('\n')) {
    const { err } = JSON.parse(line) as { err: { message: string; code: string } };
    assert.deepEqual([err.message, err.code], [error.message, '23514']);
  }
});
