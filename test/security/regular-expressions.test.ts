import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import ts from 'typescript';
import { processorMs } from '../support/processor-time.ts';

/**
 * Every regular expression that the product is written with, against texts that make one try again and again: its time may
 * grow as the text does, and no faster.
 */
const ROOT = new URL('../../', import.meta.url);
const SHORT = 2_000;
const LONG = 20_000;
/** Milliseconds that are no sign of anything. */
const NOTHING = 20;
/** How much longer than a tenth of the text the whole may take, when ten times were exact. */
const TOLERATED = 30;

interface Found {
  readonly file: string;
  readonly line: number;
  readonly expression: RegExp;
}

/** Expressions that see nothing but what the operator has written: settings, and arguments of the command line. */
const OPERATOR_ONLY = [
  'src/domain/setting-values.ts: /\\/+$/',
  'src/main/admin/listen.ts: /\\/+$/',
  'src/store/files/open.ts: /^\\/+|\\/+$/g',
];

async function sources(): Promise<string[]> {
  const all = await Promise.all(
    ['client', 'src', 'activities', 'workflows'].map(async (folder) =>
      (await readdir(new URL(folder, ROOT), { recursive: true })).map((file) => `${folder}/${file}`),
    ),
  );
  return all.flat().filter((file) => /\.tsx?$/.test(file));
}

async function expressionsOf(file: string): Promise<Found[]> {
  const source = ts.createSourceFile(file, await readFile(new URL(file, ROOT), 'utf8'), ts.ScriptTarget.Latest, true);
  const found: Found[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) {
      const end = node.text.lastIndexOf('/');
      const { line } = source.getLineAndCharacterOfPosition(node.pos);
      found.push({ file, line: line + 1, expression: new RegExp(node.text.slice(1, end), node.text.slice(end + 1)) });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** What is repeated: what texts are made of, and the letters of the expression itself, alone and in pairs. */
function unitsFor({ source }: RegExp): string[] {
  const own = [...new Set(source.replace(/\\./g, '').match(/[^\\^$*+?{}[\]|]/g) ?? [])].slice(0, 30);
  const words = source.match(/[a-z]{3,}/gi) ?? [];
  const common = [
    ...Array.from('aA0 \t\n.-_@<>"\'\\/,:;()=+%#[]é'),
    'a.',
    'a-',
    '0.',
    'a ',
    ' \n',
    '\\"',
    'é ',
    '0-',
    'a@',
    '<a',
  ];
  return [...new Set([...common, ...own, ...own.map((letter) => `${letter} `), ...words.slice(0, 20)])];
}

const ENDS = [
  ['', ''],
  ['', '\0'],
  ['"', ''],
  ['<', '!'],
  ['a@', '\n'],
] as const;

function fastest(expression: RegExp, text: string): number {
  let best = Infinity;
  for (let i = 0; i < 3 && best > NOTHING / 10; i++) {
    expression.lastIndex = 0;
    const began = processorMs();
    // What replaces looks for every match, not for the first.
    if (expression.global) text.replace(expression, '');
    else expression.test(text);
    best = Math.min(best, processorMs() - began);
  }
  return best;
}

/** Lengths that are tried before the long one, so that an expression which takes for ever is found while it takes little. */
const LADDER = [16, 20, 24, 28, 40, 60, 90, 130, 200, 300, 500, 800, 1_300];

/** The worst text for an expression, if there is one. */
function slowness({ file, line, expression }: Found): string | undefined {
  for (const unit of unitsFor(expression)) {
    for (const [before, after] of ENDS) {
      const time = (length: number) => fastest(expression, before + unit.repeat(length / unit.length) + after);
      const where = `${file}:${line} ${String(expression)} on ${JSON.stringify([before, unit, after])}`;
      const early = LADDER.find((length) => time(length) > NOTHING);
      if (early !== undefined) return `${where}: ${NOTHING} ms and more for ${early} characters`;
      const [tenth, whole] = [time(SHORT), time(LONG)];
      if (whole > NOTHING && (whole > tenth * TOLERATED || whole > 1_000))
        return `${where}: ${tenth} ms, then ${whole} ms`;
    }
  }
  return undefined;
}

describe('every regular expression of the product', async () => {
  const found = (await Promise.all((await sources()).map(expressionsOf))).flat();

  it('is found', () => {
    assert.ok(found.length > 150, `${found.length} expressions`);
    const all = new Set(found.map(({ file, expression }) => `${file}: ${String(expression)}`));
    for (const known of OPERATOR_ONLY) assert.ok(all.has(known), `there is no ${known} any more`);
  });

  it('takes no longer than in proportion to a text', () => {
    const tried = found.filter(({ file, expression }) => !OPERATOR_ONLY.includes(`${file}: ${String(expression)}`));
    assert.deepEqual(
      tried.map(slowness).filter((one) => one !== undefined),
      [],
    );
  });

  it('would be found out if it did not', () => {
    for (const expression of [/\s+$/, /(a+)+b/, /^(.*,)*x/, /<[^>]*>/g]) {
      assert.ok(slowness({ file: 'x.ts', line: 1, expression }), String(expression));
    }
  });
});
