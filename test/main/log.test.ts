import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { makeLog } from '../../src/main/process.ts';

const SECRET = 'ada@example.net';

/** An error as Postgres reports it. */
const databaseError = (): Error =>
  Object.assign(new Error('duplicate key'), {
    code: '23505',
    detail: `Key (email)=(${SECRET}) already exists.`,
    where: SECRET,
    internalQuery: SECRET,
  });

test('the log omits details of errors of Postgres at any depth', () => {
  const lines: string[] = [];
  const to = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString());
      done();
    },
  });
  const log = makeLog('test', 'info', to);
  const cyclic = Object.assign(new Error('cyclic'), { self: {} });
  cyclic.self = { cyclic, inner: databaseError() };
  for (const err of [
    databaseError(),
    new AggregateError([databaseError(), new AggregateError([databaseError()])], 'several addresses'),
    new Error('outer', { cause: databaseError() }),
    Object.assign(new Error('holder'), { inner: databaseError(), list: [{ deep: databaseError() }] }),
    cyclic,
  ]) {
    log.error({ err }, 'failed');
    log.error(err);
  }
  assert.equal(lines.length, 10);
  assert.ok(!lines.join('').includes(SECRET), lines.join(''));
  assert.match(lines[0] ?? '', /"code":"23505"/);
  assert.match(lines[2] ?? '', /several addresses.*duplicate key/);
  assert.match(lines[4] ?? '', /outer: duplicate key/);
});
