type Name = 'BENCH_SIZE' | 'BENCH_RUNS' | 'BENCH_SECONDS' | 'BENCH_ROWS';

/** How large or long a measurement is: the environment's value, for a quick look, else its usual size. */
export function size(name: Name, usual: number): number {
  const given = process.env[name];
  if (!given) return usual;
  if (!/^[1-9]\d{0,8}$/.test(given)) throw new Error(`${name} must be a whole number from 1 on`);
  return Number(given);
}
