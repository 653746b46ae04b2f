import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Greedy } from './neighbor-forces.ts';

/**
 * Starts forces in threads of their own, so that what they send does not delay the probes, which run in this one.
 *
 * @returns stops them.
 */
export async function startForces(names: readonly string[], greedy: Greedy): Promise<() => Promise<void>> {
  const { stack, keys, inboxId, organizationId, email } = greedy;
  const { baseUrl, apiKey, inboundPort } = stack;
  const own: Greedy = { stack: { baseUrl, apiKey, inboundPort }, keys, inboxId, organizationId, email };
  const file = new URL('./neighbor-force-thread.ts', import.meta.url);
  const threads: Worker[] = [];
  // One after the other: a force at work would refuse the preparations of the next.
  for (const name of names) {
    const thread = new Worker(file, { workerData: { name, greedy: own } });
    threads.push(thread);
    await once(thread, 'message');
  }
  return async () => {
    const ends = threads.map((thread) => once(thread, 'exit'));
    for (const thread of threads) thread.postMessage('stop');
    await Promise.all(ends);
  };
}
