/** Milliseconds of processor time that this process has used: other processes do not change what a function takes of it. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
