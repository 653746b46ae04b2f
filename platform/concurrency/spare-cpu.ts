import { cpus } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';

/** Work after which it looks for idle processors. Linux counts their time in steps of 10 ms. */
const WORK_MS = 250;
const STEP_MS = 50;
/** A rest ends when this much of one processor was idle for a step: it could have done the work. */
const IDLE_PROCESSORS = 0.5;
/** The longest rest, as a multiple of the work before it: a quarter of the time is left for the work. */
const MAX_REST = 3;
/** Longer rests would delay the end of work that is canceled. */
const MAX_REST_MS = 2_000;

export interface SpareCpuOptions {
  /** Idle time of all processors of the machine since it started, in milliseconds. */
  readIdleMs?: () => number;
  now?: () => number;
}

const readMachineIdleMs = (): number => cpus().reduce((sum, { times }) => sum + times.idle, 0);

/**
 * For long work that nobody waits for, in a process that does other work, too: call the result between its steps. While the
 * processors of the machine are busy it rests, so that what someone waits for is done first; on a machine that is idle it
 * costs a sixth of the time.
 */
export function createSpareCpu({
  readIdleMs = readMachineIdleMs,
  now = () => performance.now(),
}: SpareCpuOptions = {}): () => Promise<void> {
  let workSince = now();
  return async () => {
    const workMs = now() - workSince;
    if (workMs < WORK_MS) return;
    const restsUntil = now() + Math.min(MAX_REST * workMs, MAX_REST_MS);
    for (let isIdle = false; !isIdle && now() < restsUntil; ) {
      const [at, idleMs] = [now(), readIdleMs()];
      await pause(STEP_MS);
      isIdle = readIdleMs() - idleMs >= IDLE_PROCESSORS * (now() - at);
    }
    workSince = now();
  };
}
