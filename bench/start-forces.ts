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
  for (const name of names) {
    const thread = new Worker(file, { workerData: { name, greedy: own } });
    threads.push(thread);
    await once(thread, 'message');
  }
  // After all have prepared: a force at work would refuse the preparations of the next.
  await tell('start', 'message');
  return () => tell('stop', 'exit');

  async function tell(message: string, answer: string): Promise<void> {
    const answers = threads.map((thread) => once(thread, answer));
    for (const thread of threads) thread.postMessage(message);
    await Promise.all(answers);
  }
}
