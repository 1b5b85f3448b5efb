import assert from 'node:assert/strict';
import pg from 'pg';
import type { Db, Pool } from '../../src/store/postgres/pool.ts';

/** A step of an executed plan, as EXPLAIN (ANALYZE) reports it. */
export interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Work whose statements are explained, with its name. */
type Explained = readonly [what: string, work: (db: Db) => Promise<unknown>];

/**
 * Passes the steps of the plans of each work to `check`: with the generic plan that Postgres keeps, and with plans for the
 * values. Changes are rolled back.
 */
export async function explainEach(
  pool: Pool,
  works: readonly Explained[],
  check: (steps: readonly PlanNode[], message: string) => void,
  modes: readonly ('generic' | 'custom')[] = ['generic', 'custom'],
): Promise<void> {
  for (const mode of modes) {
    const client = await pool.connect();
    try {
      await client.query(`SET plan_cache_mode = force_${mode}_plan`);
      for (const [what, work] of works) {
        const plans: PlanNode[] = [];
        await client.query('BEGIN');
        await work(explaining(client, plans));
        await client.query('ROLLBACK');
        assert.ok(plans.length > 0, what);
        check(plans.flatMap(flat), `${what} with a ${mode} plan: ${JSON.stringify(plans, null, 1)}`);
      }
    } finally {
      client.release(true);
    }
  }
}

/** Executes each statement and collects its plan. */
export function explaining(client: pg.PoolClient, plans: PlanNode[]): Db {
  const query = async (statement: string | pg.QueryConfig, given?: unknown[]) => {
    const { text, values } = typeof statement === 'string' ? { text: statement, values: given } : statement;
    const literals = (values ?? []).map((value: unknown) => literal(value)).join(', ');
    await client.query(`PREPARE explained AS ${text}`);
    const { rows } = await client.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(
      `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE explained (${literals})`,
    );
    plans.push(...(rows[0]?.['QUERY PLAN'] ?? []).map(({ Plan }) => Plan));
    await client.query('DEALLOCATE explained');
    return client.query(text, values as unknown[]);
  };
  return { query } as unknown as Db;
}

/** Executes each statement by the plan that its connection has cached, collects that plan, and returns no rows. */
export function explainingKept(client: pg.PoolClient, plans: PlanNode[]): Db {
  const query = async ({ name, values }: pg.QueryConfig) => {
    const literals = (values ?? []).map((value: unknown) => literal(value)).join(', ');
    const { rows } = await client.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(
      `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE ${pg.escapeIdentifier(name ?? '')} (${literals})`,
    );
    plans.push(...(rows[0]?.['QUERY PLAN'] ?? []).map(({ Plan }) => Plan));
    return { rows: [] };
  };
  return { query } as unknown as Db;
}

function literal(value: unknown): string {
  if (value === null) return 'NULL';
  return pg.escapeLiteral(Array.isArray(value) ? arrayOf(value) : `${value as string | number}`);
}

function arrayOf(values: readonly unknown[]): string {
  const item = (value: unknown) => {
    if (value === null) return 'NULL';
    if (Buffer.isBuffer(value)) return JSON.stringify(`\\x${value.toString('hex')}`);
    return JSON.stringify(typeof value === 'object' ? JSON.stringify(value) : `${value as string | number}`);
  };
  return `{${values.map(item).join()}}`;
}

/** A step and all below it. */
export function flat(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flat)];
}

/** Rows that a step returned. */
export function rowsOf(node: PlanNode): number {
  return node['Actual Rows'] * node['Actual Loops'];
}

/** Rows that a step read, with those that it filtered out. */
export function readBy(node: PlanNode): number {
  return rowsOf(node) + (node['Rows Removed by Filter'] ?? 0) * node['Actual Loops'];
}
