import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { type IsolationTimes, makeIsolation } from '../../src/main/isolation.ts';
import { eventually } from '../support/eventually.ts';

const CHILD = fileURLToPath(new URL('isolated-child.ts', import.meta.url));
const log = pino({ level: 'silent' });
const TIMES: IsolationTimes = {
  turnTimeoutMs: 20_000,
  pingDelayMs: 300,
  overlapPingDelayMs: 30,
  hangTimeoutMs: 3_000,
  idleTimeoutMs: 60_000,
  startTimeoutMs: 60_000,
};

function make(t: TestContext, times: Partial<IsolationTimes> = {}) {
  const children: ChildProcess[] = [];
  const start = () => {
    const child = fork(CHILD, { execArgv: ['--import', 'tsx'], serialization: 'advanced' });
    children.push(child);
    return child;
  };
  const isolation = makeIsolation(start, log, { ...TIMES, ...times });
  t.after(() => isolation.stop());
  return { children, deliver: (id: string, mayOverlap = false) => isolation.deliver({ id, version: 0 }, mayOverlap) };
}

const sent = (id: string) => ({ id, state: 'ended', status: 'sent' });

describe('the isolated process', () => {
  test('delivers one email after the other, and is started once', async (t) => {
    const { children, deliver } = make(t);
    assert.deepEqual(await Promise.all(['a', 'b', 'c'].map((id) => deliver(id))), ['a', 'b', 'c'].map(sent));
    assert.equal(children.length, 1);
  });

  test('reports its email as crashed when it ends, and is replaced', async (t) => {
    const { children, deliver } = make(t);
    assert.equal(await deliver('crash'), 'crashed');
    assert.deepEqual(await deliver('a'), sent('a'));
    assert.equal(children.length, 2);
  });

  test('is killed when it hangs, and its email is reported as crashed', async (t) => {
    const { deliver } = make(t);
    assert.equal(await deliver('hang'), 'crashed');
  });

  test('is killed when an email blocks it later, before it gets another one', async (t) => {
    const { deliver } = make(t);
    assert.deepEqual(await deliver('first'), sent('first'));
    const blocking = deliver('late-hang');
    await sleep(4_000);
    assert.equal(await deliver('a'), 'ended');
    assert.equal(await blocking, 'crashed');
  });

  test('reports an error of the delivery', async (t) => {
    const { deliver } = make(t);
    await assert.rejects(deliver('throw'), /the database is away/);
  });

  test('begins the next email while a provider is slow; only the email that began last is reported as crashed', async (t) => {
    const { deliver } = make(t);
    const slow = deliver('slow 60000');
    assert.deepEqual(await deliver('a'), sent('a'));
    assert.equal(await deliver('crash'), 'crashed');
    assert.equal(await slow, 'ended');
  });

  test('has many emails in flight if they may overlap', async (t) => {
    const { deliver } = make(t, { pingDelayMs: 30_000 });
    await deliver('a', true);
    const ids = Array.from({ length: 20 }, (_, i) => `slow 20000 ${i}`);
    // In sequence they would take six minutes.
    assert.deepEqual(await Promise.all(ids.map((id) => deliver(id, true))), ids.map(sent));
  });

  test('reports an email as busy while it begins another one for too long', async (t) => {
    const { deliver } = make(t, { pingDelayMs: 30_000, hangTimeoutMs: 60_000, turnTimeoutMs: 200 });
    assert.deepEqual(await deliver('a'), sent('a'));
    const slow = deliver('slow 3000');
    assert.equal(await deliver('b'), 'busy');
    assert.deepEqual(await slow, sent('slow 3000'));
  });

  test('ends when it is idle, without a crash', async (t) => {
    const { children, deliver } = make(t, { idleTimeoutMs: 200 });
    assert.deepEqual(await deliver('a'), sent('a'));
    await eventually('the process ends by itself', () => children[0]?.exitCode === 0);
    assert.deepEqual(await deliver('b'), sent('b'));
  });

  test('finishes emails in flight when its worker is gone', async (t) => {
    const { children, deliver } = make(t);
    await deliver('a');
    const [child] = children as [ChildProcess];
    void deliver('slow 1000');
    child.disconnect();
    await eventually('the process ends by itself', () => child.exitCode === 0);
  });

  test('fails no email when it does not start', async (t) => {
    const start = () => fork(CHILD, { execArgv: ['--no-such-option'], stdio: 'ignore' });
    const isolation = makeIsolation(start, log, TIMES);
    t.after(() => isolation.stop());
    assert.equal(await isolation.deliver({ id: 'a', version: 0 }, false), 'ended');
  });

  test('fails no email when no process can be started, and takes the next one', async (t) => {
    const start = () => fork(CHILD, { execPath: '/no/such/file', stdio: 'ignore' });
    const isolation = makeIsolation(start, log, TIMES);
    t.after(() => isolation.stop());
    for (const id of ['a', 'b']) assert.equal(await isolation.deliver({ id, version: 0 }, false), 'ended');
  });
});
