/** The reasons why a migration cannot run while the previous version serves; none when it can. */
export interface Judgement {
  readonly name: string;
  readonly wrong: readonly string[];
}

/** The comment of a migration that may break a rule: `-- on purpose: why it does no harm`. */
const ON_PURPOSE = /^-- on purpose: \S.{20,}$/;

/** Tables that grow with every message: reading one under a lock stops requests for minutes. */
const LARGE =
  /^(?:emails|email_(?:bodies|events|recipients|tags)|attempts|chat_(?:messages|events)|webhook_(?:events|deliveries|attempts))$/;

/** Statements that break the previous version, and what to do instead. */
const BREAKING: readonly (readonly [RegExp, string])[] = [
  [/\bDROP TABLE\b/, 'drops a table: leave it until no version reads it'],
  [
    /\bDROP (?:COLUMN\b|(?!CONSTRAINT|INDEX|DEFAULT|NOT NULL|TRIGGER|TABLE|FUNCTION)\w+ *(?:,|$))/,
    'drops a column: leave it until no version reads it',
  ],
  [/\bDROP FUNCTION\b/, 'drops a function that a trigger or the version before may call'],
  [/\bRENAME\b/, 'renames: add the new name, write both, read the old one until the next version'],
  [
    /\bALTER (?:COLUMN )?"?\w+"? (?:SET DATA )?TYPE\b/,
    'changes a type, which rewrites the table under a lock: add another column',
  ],
  [/\bSET NOT NULL\b/, 'asks for a value that the version before need not write'],
  [
    /\bADD (?:COLUMN )?(?:IF NOT EXISTS )?(?!CONSTRAINT|CHECK|UNIQUE|PRIMARY|FOREIGN)[^,]*\bNOT NULL\b(?![^,]*\b(?:DEFAULT|GENERATED)\b)/,
    'adds a column that must have a value, without a default',
  ],
  [/\b(?:TRUNCATE|DELETE FROM)\b/, 'deletes rows: that is for upkeep, in steps'],
  [/\bLOCK TABLE\b/, 'locks a table'],
];

/**
 * Judges migrations in the order in which they are applied. Those up to `baseline` are older than the first release; they
 * are read for their tables and constraints.
 */
export function judgeMigrations(
  migrations: readonly { readonly name: string; readonly sql: string }[],
  baseline: string,
): Judgement[] {
  const constraints = new Map<string, Set<string>>();
  const judged: Judgement[] = [];
  for (const { name, sql } of migrations) {
    const made = new Set(
      [...sql.matchAll(/CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)/gi)].map(([, table]) => table as string),
    );
    const wrong = statements(sql).flatMap((statement) => {
      const found = judge(statement, made, constraints);
      for (const [, constraint = '', check = ''] of statement.matchAll(NAMED_CHECK))
        constraints.set(constraint, values(check));
      for (const [, column = '', check = ''] of statement.matchAll(COLUMN_CHECK)) {
        const [, table = ''] = /CREATE TABLE (\w+)/.exec(statement) ?? [];
        constraints.set(`${table}_${column}_check`, values(check));
      }
      return found;
    });
    const allowed = sql.split('\n').some((line) => ON_PURPOSE.test(line));
    if (name > baseline) judged.push({ name, wrong: allowed ? [] : wrong });
  }
  return judged;
}

const NAMED_CHECK = /ADD CONSTRAINT (\w+) CHECK \(((?:[^()]|\([^()]*\))*)\)/g;
const COLUMN_CHECK = /(\w+) +text[^,()]*CHECK \((\w+ IN \([^()]*\))\)/g;

function judge(statement: string, made: ReadonlySet<string>, constraints: ReadonlyMap<string, Set<string>>): string[] {
  const short = statement.slice(0, 80);
  const upper = statement.replace(/'[^']*'/g, "''");
  const wrong = BREAKING.filter(([pattern]) => pattern.test(upper)).map(([, why]) => `${why}: ${short}`);
  const [, indexed] = /^CREATE (?:UNIQUE )?INDEX \S+ ON (\w+)/.exec(statement) ?? [];
  if (indexed !== undefined && !made.has(indexed)) {
    wrong.push(`makes an index on ${indexed}, which takes no writes meanwhile: ${short}`);
  }
  const [, altered] = /^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(\w+)/.exec(statement) ?? [];
  if (altered === undefined || made.has(altered)) return wrong;
  if (
    /\bADD (?:CONSTRAINT \w+ )?(?:UNIQUE|PRIMARY KEY|FOREIGN KEY|EXCLUDE)\b|\bREFERENCES\b/.test(upper) &&
    !/NOT VALID/.test(upper)
  ) {
    wrong.push(`makes a key on a table that is in use: ${short}`);
  }
  if (/\bADD CHECK\b/.test(upper)) wrong.push(`adds a check that the version before does not know: ${short}`);
  const count = (pattern: RegExp) => [...upper.matchAll(pattern)].length;
  if (LARGE.test(altered) && count(/\bCHECK \(/g) > count(/\bNOT VALID\b/g)) {
    wrong.push(`reads a large table under a lock: NOT VALID, then VALIDATE in one without a transaction: ${short}`);
  }
  const added = new Set([...statement.matchAll(/\bADD COLUMN (\w+)/g)].map(([, column]) => column));
  for (const [, constraint = '', check = ''] of statement.matchAll(NAMED_CHECK)) {
    // A new column has no rows that the version before has written.
    if (added.has(/^\w+/.exec(check)?.[0] ?? '')) continue;
    const before = constraints.get(constraint);
    const now = values(check);
    const lacks = [...(before ?? [])].filter((value) => !now.has(value));
    const widens = before !== undefined && before.size > 0 && lacks.length === 0;
    if (!widens)
      wrong.push(`${constraint} forbids what was allowed${lacks.length > 0 ? ` (${lacks.join(', ')})` : ''}: ${short}`);
  }
  return wrong;
}

/** The values that a check lists. */
function values(check: string): Set<string> {
  return new Set([...check.matchAll(/'([^']*)'/g)].map(([, value]) => value as string));
}

/** A migration's statements, each on one line, without comments and bodies of functions. */
function statements(sql: string): string[] {
  return sql
    .replace(/--[^\n]*/g, ' ')
    .replace(/\$(\w*)\$.*?\$\1\$/gs, "''")
    .split(';')
    .map((statement) => statement.replace(/\s+/g, ' ').trim())
    .filter((statement) => statement !== '' && !/^COMMENT ON /.test(statement));
}
