import type { LightMyRequestResponse } from 'fastify';
import { expectProblem } from './problems.ts';

export interface Burst {
  /** How many were not refused. */
  passed: number;
  /** The responses of those that the rate limit refused. */
  refused: LightMyRequestResponse[];
  /** How long the requests took, rounded up: how often a limit of one request a second may have been refilled meanwhile. */
  seconds: number;
}

/** Sends many requests at the same time. */
export async function sendBurst(
  requests: number,
  send: (index: number) => Promise<LightMyRequestResponse>,
): Promise<Burst> {
  const startedAt = performance.now();
  const responses = await Promise.all(Array.from({ length: requests }, (_, index) => send(index)));
  const seconds = Math.ceil((performance.now() - startedAt) / 1_000);
  const refused = responses.filter(({ statusCode }) => statusCode === 429);
  for (const response of refused) expectProblem(response, 'rate_limited');
  return { passed: requests - refused.length, refused, seconds };
}
