import { setPriority } from 'node:os';

/**
 * A nice value. At 10, "below normal", a flood of mail delayed sends by up to a second on two cores (`npm run bench -- flood`);
 * at 19, "low", a busy machine could stop receiving.
 */
const YIELDING_PRIORITY = 15;

/**
 * Lets other processes of the machine go first when the CPU is short: sending must not wait for receiving, which uses the
 * CPU whenever mail floods in. Has no effect on a machine with idle CPU.
 *
 * @param pid default: this process.
 */
export function yieldCpu(pid = 0): void {
  try {
    setPriority(pid, YIELDING_PRIORITY);
  } catch {
    // The process has ended, or the system does not allow it. Priority is only an improvement.
  }
}
