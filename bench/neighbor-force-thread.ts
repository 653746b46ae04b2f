import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { FORCES, type Greedy } from './neighbor-forces.ts';

/** A thread that takes one capacity at full force until it gets a message. */
const { name, greedy } = workerData as { name: string; greedy: Greedy };
const stop = await FORCES[name]?.(greedy);
parentPort?.postMessage('at full force');
if (parentPort) await once(parentPort, 'message');
await stop?.();
process.exit();
