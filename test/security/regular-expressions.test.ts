import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import ts from 'typescript';
import { processorMs } from '../support/processor-time.ts';

/** Matches every regular expression of the product with texts that cause backtracking: its time must be linear. */
const ROOT = new URL('../../', import.meta.url);
const SHORT = 2_000;
const LONG = 20_000;
/** Milliseconds of processor time below which a measurement is ignored. */
const NOISE_MS = 20;
/** Largest ratio of the times for the long and the short text; 10 would be linear. */
const MAX_RATIO = 30;

interface Found {
  readonly file: string;
  readonly line: number;
  readonly expression: RegExp;
}

/** Expressions for input of the operator only: settings, and arguments of the command line. */
const OPERATOR_ONLY = [
  'src/settings.ts: /\\/+$/',
  'src/main/admin/listen.ts: /\\/+$/',
  'src/store/files/s3.ts: /^\\/+|\\/+$/g',
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

/** Texts to repeat: common characters, and the characters and words of the expression, alone and in pairs. */
function unitsFor({ source }: RegExp): string[] {
  const own = [...new Set(source.replace(/\\./g, '').match(/[^\\^$*+?{}[\]|]/g) ?? [])].slice(0, 30);
  const words = source.match(/[a-z]{3,}/gi) ?? [];
  const pairs = ['a.', 'a-', '0.', 'a ', ' \n', '\\"', 'é ', '0-', 'a@', '<a'];
  const common = [...Array.from('aA0 \t\n.-_@<>"\'\\/,:;()=+%#[]é'), ...pairs];
  return [...new Set([...common, ...own, ...own.map((letter) => `${letter} `), ...words.slice(0, 20)])];
}

const ENDS = ['|', '|\0', '"|', '<|!', 'a@|\n'].map((text) => text.split('|') as [before: string, after: string]);

function fastest(expression: RegExp, text: string): number {
  let best = Infinity;
  for (let i = 0; i < 3 && best > NOISE_MS / 10; i++) {
    expression.lastIndex = 0;
    const began = processorMs();
    // A global expression is used to replace every match.
    if (expression.global) text.replace(expression, '');
    else expression.test(text);
    best = Math.min(best, processorMs() - began);
  }
  return best;
}

/** Lengths that are tried first, so that an exponential expression is found early. */
const LADDER = [16, 20, 24, 28, 40, 60, 90, 130, 200, 300, 500, 800, 1_300];

/** Describes a text for which the expression is too slow, if there is one. */
function findSlowInput({ file, line, expression }: Found): string | undefined {
  for (const unit of unitsFor(expression)) {
    for (const [before, after] of ENDS) {
      const time = (length: number) => fastest(expression, before + unit.repeat(length / unit.length) + after);
      const where = `${file}:${line} ${String(expression)} on ${JSON.stringify([before, unit, after])}`;
      const early = LADDER.find((length) => time(length) > NOISE_MS);
      if (early !== undefined) return `${where}: ${NOISE_MS} ms and more for ${early} characters`;
      const [tenth, whole] = [time(SHORT), time(LONG)];
      if (whole > NOISE_MS && (whole > tenth * MAX_RATIO || whole > 1_000))
        return `${where}: ${tenth} ms, then ${whole} ms`;
    }
  }
  return undefined;
}

describe('every regular expression of the product', async () => {
  const found = (await Promise.all((await sources()).map(expressionsOf))).flat();
  const nameOf = ({ file, expression }: Found) => `${file}: ${String(expression)}`;

  it('takes no longer than in proportion to a text', () => {
    assert.ok(found.length > 150, `${found.length} expressions`);
    for (const name of OPERATOR_ONLY)
      assert.ok(
        found.some((each) => nameOf(each) === name),
        `there is no ${name}`,
      );
    const tried = found.filter((each) => !OPERATOR_ONLY.includes(nameOf(each)));
    assert.deepEqual(
      tried.map(findSlowInput).filter((one) => one !== undefined),
      [],
    );
  });

  it('would be reported if it took longer', () => {
    for (const expression of [/\s+$/, /(a+)+b/, /^(.*,)*x/, /<[^>]*>/g]) {
      assert.ok(findSlowInput({ file: 'x.ts', line: 1, expression }), String(expression));
    }
  });
});
