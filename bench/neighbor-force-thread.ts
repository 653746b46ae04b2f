import { once } from 'node:events';
import { constants, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { FORCES, type Greedy } from './neighbor-forces.ts';

/**
 * A thread that prepares a force, takes the capacity after the first message, and stops at the second one.
 *
 * Tenants have machines of their own. So this thread uses what the service leaves of this machine's processors: otherwise
 * the bench would measure how they are shared with the bench. (On Linux the priority is the thread's.)
 */
if (!parentPort) throw new Error('This is a thread of bench -- neighbors');
setPriority(constants.priority.PRIORITY_LOW);
const { name, greedy } = workerData as { name: string; greedy: Greedy };
const start = await FORCES[name]?.(greedy);
parentPort.postMessage('prepared');
await once(parentPort, 'message');
const stop = await start?.();
parentPort.postMessage('at full force');
await once(parentPort, 'message');
await stop?.();
process.exit();
