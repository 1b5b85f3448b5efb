import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

/** A prepared statement: `{ name: 'find_message', text: … }`, or with a comment between the two. */
const STATEMENT = /\bname: '(\w+)',\s*(?:\/\/[^\n]*\s*)*text\b/g;

test('each name of a prepared statement is used once, because a connection refuses a second text under a name', () => {
  const names = new Map<string, string[]>();
  for (const file of readdirSync('src', { encoding: 'utf8', recursive: true }).filter((path) => path.endsWith('.ts'))) {
    for (const [, name = ''] of readFileSync(join('src', file), 'utf8').matchAll(STATEMENT)) {
      names.set(name, [...(names.get(name) ?? []), file]);
    }
  }
  assert.ok(names.size > 150, `${names.size} names`);
  const duplicates = [...names].filter(([, files]) => files.length > 1);
  assert.deepEqual(duplicates, []);
});
