import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missingTests, readTestTable } from '../support/test-table.ts';

/** Controls in docs/security.md, each with a number and a name. test/rules.test.ts finds renamed tests. */
const CONTROLS = 32;

const rows = await readTestTable('docs/security.md');

test('every control has a test and one name, in the order of the numbers', () => {
  const names = [...new Set(rows.map(({ rule }) => rule))];
  assert.deepEqual(
    names.map((name) => Number(/^(\d+), \S/.exec(name)?.[1])),
    Array.from({ length: CONTROLS }, (_, i) => i + 1),
  );
});

test('every test in the table exists', async () => {
  assert.deepEqual(await missingTests(rows), []);
});
