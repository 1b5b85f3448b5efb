import { type Db, execute, queryRows } from '../postgres/pool.ts';
import { columns } from '../postgres/columns.ts';

/** SQL of the id of a data key, which is also the context that the key is sealed with. */
const DATA_KEY = `org_id || ' ' || version`;

/** Columns with values that are sealed with a key of `SECRET_KEY`. `about` is SQL of the context that each is sealed with. */
const COLUMNS = {
  data_keys: { table: 'data_keys', id: DATA_KEY, column: 'sealed', about: DATA_KEY },
  webhook_secrets: { table: 'webhook_endpoints', id: 'id', column: 'secret', about: 'id' },
  old_webhook_secrets: { table: 'webhook_endpoints', id: 'id', column: 'old_secret', about: 'id' },
  older_webhook_secrets: { table: 'webhook_endpoints', id: 'id', column: 'older_secret', about: 'id' },
  chat_credentials: { table: 'chat_numbers', id: 'id', column: 'credentials', about: 'id' },
  account_links: { table: 'account_links', id: 'email_id', column: 'sealed', about: 'email_id' },
  second_factors: { table: 'second_factors', id: 'user_id', column: 'sealed', about: 'user_id' },
  dkim_keys: { table: 'domains', id: 'id', column: 'dkim_key', about: `org_id || ' ' || id` },
} as const;

/** A column of sealed values, by the name under which the command line counts them. */
export type SealedColumn = keyof typeof COLUMNS;
export const SEALED_COLUMNS = Object.keys(COLUMNS) as SealedColumn[];

export interface SealedValue {
  readonly id: string;
  readonly sealed: Buffer;
  readonly about: string;
}

/**
 * Lists values that do not begin with a prefix, in the order of their rows' ids.
 * @param prefix of values that are sealed with the primary key
 * @param after the id of the last row of the previous step, or an empty text
 */
export function listSealedOtherwise(
  db: Db,
  name: SealedColumn,
  prefix: Buffer,
  after: string,
  limit: number,
): Promise<SealedValue[]> {
  const { table, id, column, about } = COLUMNS[name];
  return queryRows(
    db,
    `SELECT ${id} AS id, ${column} AS sealed, ${about} AS about FROM ${table}
     WHERE ${id} > $1 AND substring(${column} FROM 1 FOR octet_length($2::bytea)) <> $2 ORDER BY ${id} LIMIT $3`,
    [after, prefix, limit],
  );
}

/** Replaces sealed values, except those that have changed since they were read. @returns how many it replaced */
export function replaceSealed(
  db: Db,
  name: SealedColumn,
  values: readonly (SealedValue & { readonly resealed: Buffer })[],
): Promise<number> {
  const { table, id, column } = COLUMNS[name];
  return execute(
    db,
    `UPDATE ${table} SET ${column} = value.resealed
     FROM unnest($1::text[], $2::bytea[], $3::bytea[]) AS value(row_id, former, resealed)
     WHERE ${id} = value.row_id AND ${column} = value.former`,
    columns(values, 'id', 'sealed', 'resealed'),
  );
}
