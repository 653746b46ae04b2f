import { constants, setPriority } from 'node:os';

/**
 * A nice value. At 10, "below normal", a flood of mail delayed sends by up to a second on two cores (`npm run bench -- flood`);
 * at 19, "low", a busy machine could stop receiving.
 */
const PROCESS_PRIORITY = 15;

/**
 * Lets other processes of the machine go first when the CPU is short: sending must not wait for receiving, which uses the
 * CPU whenever mail floods in. Has no effect on a machine with idle CPU.
 */
export const yieldCpu = (): void => yieldPriority(0, PROCESS_PRIORITY);

/** The same for a child process. It yields less, because its work has a time limit. */
export const yieldCpuOfChild = (pid: number): void =>
  yieldPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);

function yieldPriority(pid: number, priority: number): void {
  try {
    setPriority(pid, priority);
  } catch {
    // The process has ended, or the system does not allow it. Priority is only an improvement.
  }
}
