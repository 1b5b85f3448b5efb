import pg from 'pg';
import type { Db } from '../../src/store/postgres/pool.ts';

/** A step of a plan that was carried out, as EXPLAIN (ANALYZE) tells it. */
export interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/**
 * Runs each statement as it is and notes its plan: the one that Postgres keeps (generic) or makes for its values
 * (custom), as the client's `plan_cache_mode` says.
 */
export function explaining(client: pg.PoolClient, plans: PlanNode[]): Db {
  const query = async ({ text, values }: pg.QueryConfig) => {
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

/** Runs each statement by the plan that its connection has kept of it, notes how that went, and gives no rows. */
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
  return `{${values.map((value) => (value === null ? 'NULL' : JSON.stringify(`${value as string | number}`))).join()}}`;
}

/** A step and all below it. */
export function flat(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flat)];
}

/** Rows that a step has given. */
export function rowsOf(node: PlanNode): number {
  return node['Actual Rows'] * node['Actual Loops'];
}

/** Rows that a step has looked at, also in vain. */
export function readBy(node: PlanNode): number {
  return rowsOf(node) + (node['Rows Removed by Filter'] ?? 0) * node['Actual Loops'];
}
