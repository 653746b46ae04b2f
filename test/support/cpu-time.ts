/** CPU time of `work` in milliseconds, regardless of other load on the machine. */
export function cpuTimeMs(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** CPU time of this thread during `work` in milliseconds: an upper bound for how long it blocked the event loop. */
export async function threadTimeMs(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
