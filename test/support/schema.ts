import type { Db } from '../../src/store/postgres/pool.ts';

/**
 * A database's schema as text for reviews and for a test: tables with their columns, constraints, indexes and comments, sorted by
 * name, independent of the server's version.
 */
export async function describeSchema(db: Db): Promise<string> {
  const { rows } = await db.query<{ lines: string }>(DESCRIBE);
  return rows.map((row) => row.lines).join('\n');
}

const DESCRIBE = `
  SELECT concat_ws(E'\\n',
    concat_ws(' ', 'TABLE', relation.relname, 'PARTITION BY ' || pg_get_partkeydef(relation.oid),
              'WITH (' || array_to_string(coalesce(first_partition.reloptions, relation.reloptions), ', ') || ')'),
    '  -- ' || obj_description(relation.oid, 'pg_class'),
    (SELECT string_agg(concat_ws(E'\\n',
        '  ' || concat_ws(' ', quote_ident(attname), format_type(atttypid, atttypmod),
          CASE WHEN attcollation <> typcollation THEN 'COLLATE ' || quote_ident(collname) END,
          CASE WHEN attnotnull THEN 'NOT NULL' END,
          CASE attidentity WHEN 'a' THEN 'GENERATED ALWAYS AS IDENTITY' END,
          'DEFAULT ' || pg_get_expr(adbin, adrelid)),
        '    -- ' || col_description(attrelid, attnum)
      ), E'\\n' ORDER BY attnum)
     FROM pg_attribute
     JOIN pg_type ON pg_type.oid = atttypid
     LEFT JOIN pg_collation ON pg_collation.oid = attcollation
     LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
     WHERE attrelid = relation.oid AND attnum > 0 AND NOT attisdropped),
    (SELECT string_agg('  ' || conname || ': ' || pg_get_constraintdef(oid), E'\\n' ORDER BY conname)
     FROM pg_constraint WHERE conrelid = relation.oid AND contype <> 'n'),
    (SELECT string_agg(concat_ws(E'\\n',
        '  ' || pg_get_indexdef(indexrelid),
        '    -- ' || obj_description(indexrelid, 'pg_class')
      ), E'\\n' ORDER BY indexrelid::regclass::text)
     FROM pg_index WHERE indrelid = relation.oid)
  ) || E'\\n' AS lines
  FROM pg_class AS relation
  LEFT JOIN pg_class AS first_partition ON first_partition.oid = to_regclass(relation.relname || '_first')
  WHERE relation.relkind IN ('r', 'p') AND NOT relation.relispartition AND relation.relnamespace = 'public'::regnamespace
  ORDER BY relation.relname`;
