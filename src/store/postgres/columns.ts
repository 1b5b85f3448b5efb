/** Returns one array per field, as `unnest` takes them. A missing field is null; objects become JSON. */
export function columns<T>(rows: readonly T[], ...names: readonly (keyof T)[]): unknown[][] {
  return names.map((name) => rows.map((row) => row[name] ?? null));
}
