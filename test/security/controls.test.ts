import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missingTests, readTestTable } from '../support/test-table.ts';

/** How many controls there are; each is a number and a name in docs/security.md. */
const CONTROLS = 30;

const rows = await readTestTable('docs/security.md');

test('every control has a test, one name, and its place in the order', () => {
  const names = [...new Set(rows.map(({ rule }) => rule))];
  assert.deepEqual(
    names.map((name) => Number(/^(\d+), \S/.exec(name)?.[1])),
    Array.from({ length: CONTROLS }, (_, i) => i + 1),
  );
});

test('every test that is named is there', async () => {
  assert.deepEqual(await missingTests(rows), []);
});

test('one that is not there is found out', async () => {
  const [row] = rows;
  assert.ok(row, 'there is a row');
  const gone = { ...row, name: `${row.name} once more` };
  assert.deepEqual(await missingTests([row, gone]), [`${gone.rule}: ${gone.file}: ${gone.name}`]);
});
