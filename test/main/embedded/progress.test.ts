import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { duration, makeProgress, type Terminal } from '../../../src/main/embedded/progress.ts';

const PACE = { quiet: 100, redraw: 20, repeat: 60 };

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

test('what takes longer is told every while, with what its tool says, where nothing can be drawn again', async () => {
  const { heard, terminal } = ear();
  await makeProgress(terminal, PACE).step('Build', async (step) => {
    step.detail('\u001B[32mpackage\u001B[0m 12\r');
    await sleep(90);
    assert.deepEqual(heard, []);
    await sleep(140);
    step.rename('Build, done');
  });
  assert.match(heard[0] ?? '', /^ {2}… Build {2}0\.\d s {2}package 12\n$/);
  assert.ok(heard.length >= 3 && heard.length <= 5, heard.join(''));
  assert.match(heard.at(-1) ?? '', /^ {2}✓ Build, done {2}0\.\d s\n$/);
});

test('on a terminal it is one line that is drawn again, no wider than the terminal', async () => {
  const { heard, terminal } = ear({ isTTY: true, columns: 30 });
  await makeProgress(terminal, PACE).step('Build', async (step) => {
    step.detail('x'.repeat(200));
    await sleep(200);
  });
  const drawn = heard.slice(0, -1);
  assert.ok(drawn.length >= 2);
  for (const text of drawn) {
    assert.ok(text.startsWith('\r\u001B[2K  … Build') && !text.includes('\n'), text);
    assert.ok(text.length - '\r\u001B[2K'.length < 30);
  }
  assert.match(heard.at(-1) ?? '', /✓ Build {2}0\.2 s\n$/);
});

test('nothing is drawn any more when nothing goes on', async () => {
  const { heard, terminal } = ear({ isTTY: true });
  const progress = makeProgress(terminal, { quiet: 0, redraw: 5, repeat: 5 });
  await Promise.all([progress.step('one', () => sleep(20)), progress.step('two', () => sleep(40))]);
  const { length } = heard;
  await sleep(30);
  assert.equal(heard.length, length);
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
