import { constants, setPriority } from 'node:os';

/**
 * Lets other processes of the machine go first when the CPU is short: sending must not wait for receiving, which uses the
 * CPU whenever mail floods in. Has no effect on a machine with idle CPU.
 *
 * @param pid default: this process.
 */
export function yieldCpu(pid = 0): void {
  try {
    setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // The process has ended, or the system does not allow it. Priority is only an improvement.
  }
}
