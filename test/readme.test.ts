import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { SETTINGS } from '../src/config.ts';
import { STATUS } from '../src/http/errors.ts';

const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');

/** The cells of every table row whose cell at `column` is `word` in backticks. */
function rows(word: string, column: number): string[][] {
  return readme
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
    .filter((cells) => cells[column] === `\`${word}\``);
}

test('the README lists every setting with its default and meaning', () => {
  for (const [name, setting] of Object.entries(SETTINGS)) {
    const fallback = 'fallback' in setting ? `\`${setting.fallback}\`` : '';
    assert.deepEqual(rows(name, 0), [[`\`${name}\``, fallback, setting.meaning]]);
  }
});

test('the README lists every error code with its status', () => {
  for (const [code, status] of Object.entries(STATUS)) {
    assert.deepEqual(
      rows(code, 1).map((cells) => cells[0]),
      [String(status)],
      code,
    );
  }
});

test('the README lists no code that does not exist', () => {
  const table = readme.slice(readme.indexOf('## Error codes'), readme.indexOf('## Running it for real'));
  const listed = [...table.matchAll(/^\| \d{3} +\| `(\w+)`/gm)].map((match) => match[1]);
  assert.deepEqual(
    listed.filter((code) => !((code as string) in STATUS)),
    [],
  );
  assert.equal(listed.length, Object.keys(STATUS).length);
});
