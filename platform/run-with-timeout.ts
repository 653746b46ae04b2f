import { createContext, Script } from 'node:vm';

const script = new Script('work()');
/** Created once: a context costs a millisecond and the memory of its globals, more than most work that runs in it. */
const context = createContext({ work: undefined });

/** Work that had less of a processor was kept waiting by others, which says nothing about its input: it is tried again. */
const MIN_CPU_SHARE = 0.5;
const MAX_TRIES = 3;

/**
 * Runs synchronous work on untrusted input with a timeout. Node can interrupt code only inside a `vm` script; this includes
 * regular expressions with catastrophic backtracking.
 *
 * @param work runs again if the machine was too busy to run it in time.
 * @returns the result of the work, or null if it timed out.
 * @throws the error that the work throws.
 */
export function runWithTimeout<T extends NonNullable<unknown>>(timeoutMs: number, work: () => T): T | null {
  for (let tries = 1; ; tries += 1) {
    const start = process.threadCpuUsage();
    try {
      context.work = work;
      return script.runInContext(context, { timeout: timeoutMs }) as T;
    } catch (error) {
      if ((error as { code?: unknown } | null)?.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      const { user, system } = process.threadCpuUsage(start);
      if (tries === MAX_TRIES || (user + system) / 1_000 >= MIN_CPU_SHARE * timeoutMs) return null;
    }
  }
}
