import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { FAULTS } from './faults.ts';
import type { RunResult } from './harness.ts';

/** Results of runs, one line of JSON each, a file for each fault. */
export interface Results {
  readonly add: (result: RunResult) => void;
  readonly of: (fault: string) => RunResult[];
  readonly forget: (fault: string) => void;
}

export function openResults(folder: string): Results {
  mkdirSync(folder, { recursive: true });
  const pathOf = (fault: string) => join(folder, `${fault}.jsonl`);
  return {
    add: (result) => appendFileSync(pathOf(result.fault), `${JSON.stringify(result)}\n`),
    of(fault) {
      if (!existsSync(pathOf(fault))) return [];
      const lines = readFileSync(pathOf(fault), 'utf8').split('\n').filter(Boolean);
      return lines.map((line) => JSON.parse(line) as RunResult);
    },
    forget: (fault) => rmSync(pathOf(fault), { force: true }),
  };
}

type Row = Readonly<Record<string, string | number>>;

/** A row for each fault that was run. */
function rowsOf(results: Results): Row[] {
  return Object.entries(FAULTS).flatMap(([name, { what }]) => {
    const runs = results.of(name);
    const sum = (of: (run: RunResult) => number) => runs.reduce((total, run) => total + of(run), 0);
    const longest = (of: (run: RunResult) => number) => Math.ceil(Math.max(...runs.map(of)) / 1_000);
    if (runs.length === 0) return [];
    return {
      name,
      fault: what,
      runs: runs.length,
      accepted: sum(({ accepted }) => accepted),
      lost: sum(({ lost }) => lost),
      'twice, explained': sum(({ explained }) => explained),
      'failed, ambiguous': sum(({ unresolved }) => unresolved),
      'twice, unexplained': sum(({ twice }) => twice),
      'otherwise wrong': sum(({ wrong, lost, twice }) => wrong.length - lost - twice),
      'handed over within s': longest(({ handedOver }) => handedOver),
      'settled within s': longest(({ settled }) => settled),
    };
  });
}

export function printResults(results: Results): void {
  const rows = rowsOf(results);
  if (rows.length > 0) console.table(rows);
}

/** The table of docs/guarantees.md. */
export function printMarkdown(results: Results): void {
  const rows = rowsOf(results);
  const names = Object.keys(rows[0] ?? {});
  const line = (cells: readonly (string | number)[]) => `| ${cells.map(show).join(' | ')} |`;
  const rule = names.map((name) => (typeof rows[0]?.[name] === 'number' ? '---:' : '---'));
  console.log([line(names), line(rule), ...rows.map((row) => line(Object.values(row)))].join('\n'));
}

function show(cell: string | number): string {
  return typeof cell === 'number' ? cell.toLocaleString('en') : cell;
}
