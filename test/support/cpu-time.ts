/** Milliseconds of processor a piece of work took: what else the machine does does not count. */
export function cpuTimeMs(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
