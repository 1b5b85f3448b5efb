/** Returns the milliseconds of processor time that this process has used. Other processes, unlike with the clock, do not add to it. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
