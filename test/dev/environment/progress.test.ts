import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { makeProgress, type Terminal } from '../../../dev/environment/progress.ts';

const PACE = { quiet: 2_000, redraw: 200, repeat: 60_000 };

function fakeTerminal(more: Partial<Terminal> = {}) {
  const output: string[] = [];
  return { output, terminal: { ...more, write: (text: string) => output.push(text) } };
}

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
  const { output, terminal } = fakeTerminal();
  const { pass, end } = startStep(t, terminal);
  pass(1_900);
  assert.equal(output.length, 0);
  pass(58_000);
  assert.equal(output.length, 1);
  assert.match(output[0] ?? '', /^ {2}… Build {2}2\.0 s {2}package 12 x+\n$/);
  pass(60_000);
  await end();
  assert.equal(output.length, 3);
  assert.match(output[1] ?? '', /^ {2}… Build {2}1 min 2 s {2}package 12 x+\n$/);
  assert.equal(output[2], '  ✓ Build, done  2 min 0 s\n');
});

test('redraws one line on a terminal, no wider than the terminal', async (t) => {
  const { output, terminal } = fakeTerminal({ isTTY: true, columns: 30 });
  const { pass, end } = startStep(t, terminal);
  pass(2_600);
  await end();
  assert.equal(output.length, 5);
  for (const text of output.slice(0, -1)) {
    assert.ok(text.startsWith('\r\u001B[2K  … Build') && !text.includes('\n'), text);
    assert.ok(text.length - '\r\u001B[2K'.length < 30);
  }
  assert.match(output.at(-1) ?? '', /✓ Build, done {2}2\.6 s\n$/);
  pass(10_000);
  assert.equal(output.length, 5);
});
