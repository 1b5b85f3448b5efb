import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { duration, makeProgress, type Terminal } from '../../../dev/environment/progress.ts';

const PACE = { quiet: 2_000, redraw: 200, repeat: 60_000 };

function ear(more: Partial<Terminal> = {}) {
  const heard: string[] = [];
  return { heard, terminal: { ...more, write: (text: string) => heard.push(text) } };
}

test('a finished step is a line with its name and time', async () => {
  const { heard, terminal } = ear();
  const progress = makeProgress(terminal, PACE);
  assert.equal(await progress.step('Postgres', () => Promise.resolve(7)), 7);
  assert.deepEqual(heard, ['  ✓ Postgres  0.0 s\n']);
});

test('a step that fails is a line too, and its error goes on', async () => {
  const { heard, terminal } = ear();
  const failing = makeProgress(terminal, PACE).step('Postgres', () => Promise.reject(new Error('no')));
  await assert.rejects(failing, /no/);
  assert.deepEqual(heard, ['  ✗ Postgres  0.0 s\n']);
});

/** A step that lasts until `finish`, on a clock that moves with `pass` only. */
function startStep(t: TestContext, terminal: Terminal) {
  t.mock.timers.enable({ apis: ['setInterval', 'Date'] });
  let finish = () => {};
  const done = makeProgress(terminal, PACE).step('Build', async (step) => {
    step.detail(`\u001B[32mpackage\u001B[0m 12 ${'x'.repeat(100)}\r`);
    await new Promise<void>((resolve) => (finish = resolve));
    step.rename('Build, done');
  });
  const end = async () => {
    finish();
    await done;
  };
  const pass = (ms: number) => {
    // Node 20 moves the clock before it runs the timers of a tick.
    for (let passed = 0; passed < ms; passed += 100) t.mock.timers.tick(100);
  };
  return { pass, end };
}

test('reports a step that takes longer with one line, and another one a minute later, where nothing can be redrawn', async (t) => {
  const { heard, terminal } = ear();
  const { pass, end } = startStep(t, terminal);
  pass(1_900);
  assert.equal(heard.length, 0);
  pass(58_000);
  assert.equal(heard.length, 1);
  assert.match(heard[0] ?? '', /^ {2}… Build {2}2\.0 s {2}package 12 x+\n$/);
  pass(60_000);
  await end();
  assert.equal(heard.length, 3);
  assert.match(heard[1] ?? '', /^ {2}… Build {2}1 min 2 s {2}package 12 x+\n$/);
  assert.equal(heard[2], '  ✓ Build, done  2 min 0 s\n');
});

test('redraws one line on a terminal, no wider than the terminal', async (t) => {
  const { heard, terminal } = ear({ isTTY: true, columns: 30 });
  const { pass, end } = startStep(t, terminal);
  pass(2_600);
  await end();
  assert.equal(heard.length, 5);
  for (const text of heard.slice(0, -1)) {
    assert.ok(text.startsWith('\r\u001B[2K  … Build') && !text.includes('\n'), text);
    assert.ok(text.length - '\r\u001B[2K'.length < 30);
  }
  assert.match(heard.at(-1) ?? '', /✓ Build, done {2}2\.6 s\n$/);
  pass(10_000);
  assert.equal(heard.length, 5);
});

test('times are told as people read them', () => {
  assert.deepEqual([40, 1_234, 9_940, 12_400, 59_600, 170_400].map(duration), [
    '0.0 s',
    '1.2 s',
    '9.9 s',
    '12 s',
    '1 min 0 s',
    '2 min 50 s',
  ]);
});
