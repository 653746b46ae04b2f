import { readdirSync, readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;

/** CPU seconds used so far by this process's descendants, by kind of process. Linux only. */
export function cpuSeconds(): Record<string, number> {
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap(readProcess);
  const parentOf = new Map(processes.map(({ pid, parent }) => [pid, parent]));
  const isOurs = (pid: number): boolean => pid === process.pid || (pid > 1 && isOurs(parentOf.get(pid) ?? 0));
  const seconds: Record<string, number> = {};
  for (const { pid, name, ticks } of processes) {
    if (isOurs(pid)) seconds[name] = (seconds[name] ?? 0) + ticks / TICKS_PER_SECOND;
  }
  return seconds;
}

/** CPU seconds used between two readings, largest first, without those below `least`. */
export function cpuBetween(
  before: Record<string, number>,
  after: Record<string, number>,
  least = 0.1,
): Record<string, number> {
  const used = Object.entries(after).map(
    ([name, seconds]) => [name, Math.round((seconds - (before[name] ?? 0)) * 100) / 100] as const,
  );
  return Object.fromEntries(used.filter(([, seconds]) => seconds >= least).sort(([, a], [, b]) => b - a));
}

function readProcess(name: string): { pid: number; parent: number; name: string; ticks: number }[] {
  try {
    const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
    return [
      {
        pid: Number(name),
        parent: Number(fields[1]),
        name: titleOf(words),
        ticks: Number(fields[11]) + Number(fields[12]),
      },
    ];
  } catch {
    // It exited between the listing and the reading.
    return [];
  }
}

function titleOf(words: string[]): string {
  const script = words.find((word) => /\.(ts|mjs|js)$/.test(word));
  if (script) return script.split('/').slice(-2).join('/');
  return words[0]?.startsWith('postgres') ? 'postgres' : (words[0]?.split('/').at(-1)?.split(' ')[0] ?? '');
}
