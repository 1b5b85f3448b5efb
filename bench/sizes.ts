type Name = 'BENCH_SIZE' | 'BENCH_RUNS' | 'BENCH_SECONDS' | 'BENCH_ROWS';

/** Returns the size or duration of a measurement: the value in the environment, for a quick run, otherwise the usual one. */
export function size(name: Name, usual: number): number {
  const given = process.env[name];
  if (!given) return usual;
  if (!/^[1-9]\d{0,8}$/.test(given)) throw new Error(`${name} must be a whole number from 1 on`);
  return Number(given);
}
