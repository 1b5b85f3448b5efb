import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './root.ts';

/** A row of a table of rules and their tests. */
export interface TestRow {
  /** The first cell up to its colon. */
  readonly rule: string;
  readonly file: string;
  readonly name: string;
}

/** The first and the last two columns of the first table of a document. */
export async function readTestTable(document: string): Promise<TestRow[]> {
  const text = await readFile(join(ROOT, document), 'utf8');
  const [, , ...lines] = text.split('\n').filter((line) => line.startsWith('|'));
  return lines.map((line) => {
    const cells = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    const [rule = '', [file = '', name = '']] = [cells[0], cells.slice(-2)];
    assert.match(rule, /^[^:]+: \S/, `a rule, a colon, and what it is about: ${line}`);
    return { rule: rule.split(':', 1).join(), file: bare(file), name: bare(name) };
  });
}

function bare(cell: string): string {
  return cell.replace(/^`(.*)`$/, '$1');
}

/** Returns true if a source contains a test name: as a literal, or as the fixed part of a template with `…` for the rest. */
export function isNamed(source: string, name: string): boolean {
  const before = name.startsWith('…') ? ['}'] : ["'", '"', '`'];
  const fixed = name.replace(/^…|…$/g, '');
  return before.some((mark) =>
    source.includes(`${mark}${fixed}${name.endsWith('…') ? '${' : mark === '}' ? '`' : mark}`),
  );
}

/** Rows whose file does not exist or does not contain the test. */
export async function missingTests(rows: readonly TestRow[]): Promise<string[]> {
  const missing: string[] = [];
  for (const { rule, file, name } of rows) {
    assert.match(file, /^test\/.+\.test\.ts$/, rule);
    assert.match(name, /\S/, rule);
    const source = await readFile(join(ROOT, file), 'utf8').catch(() => '');
    if (!isNamed(source, name)) missing.push(`${rule}: ${file}: ${name}`);
  }
  return missing;
}
