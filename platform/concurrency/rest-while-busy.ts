import { cpus } from 'node:os';
import { setTimeout } from 'node:timers/promises';

/** How long to work between two looks at the processors. */
const WORK_MS = 250;
/** How long to look. Linux counts idle time in steps of 10 ms. */
const STEP_MS = 50;
/** A rest ends when this much of one processor was idle for a step: the work could have used it. */
const IDLE_PROCESSORS = 0.5;
/** The longest rest, as a multiple of the work before it: a quarter of the time is left for the work. */
const MAX_REST = 3;
/** Canceled work ends no later than this. */
const MAX_REST_MS = 2_000;

export interface RestOptions {
  /** Idle time of all processors of the machine since it started, in milliseconds. */
  readIdleMs?: () => number;
  now?: () => number;
  pause?: (ms: number) => Promise<unknown>;
}

const readMachineIdleMs = (): number => cpus().reduce((sum, { times }) => sum + times.idle, 0);

/**
 * Paces long background work in a process that also does urgent work. Call the returned function between the steps of the
 * work: it waits while all processors of the machine are busy. On an idle machine it takes a sixth of the time.
 */
export function createRestWhileBusy({
  readIdleMs = readMachineIdleMs,
  now = () => performance.now(),
  pause = setTimeout,
}: RestOptions = {}): () => Promise<void> {
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
