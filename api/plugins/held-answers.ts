import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Wait } from '../../domain/events/wait.ts';
import { resource, strictObject } from '../schemas.ts';
import { type OpenResponses, readRefusal } from './open-responses.ts';

/** Query of every operation that waits. */
export const timeout = {
  timeout_seconds: Type.Integer({
    minimum: 1,
    maximum: 300,
    default: 30,
    description: 'How long to wait; proxies must allow responses that take this long.',
  }),
};
export const TimeoutQuery = strictObject(timeout);

export const TimedOut = resource(
  'timeout',
  { timed_out: Type.Literal(true) },
  {
    $id: 'TimedOut',
    title: 'TimedOut',
    description: 'Nothing happened in time, or the service is restarting: call again.',
  },
);

export interface HeldRequest {
  request: FastifyRequest;
  reply: FastifyReply;
  timeoutSeconds: number;
  openResponses: OpenResponses;
  /** How often the credential is rechecked. */
  heartbeatMs: number;
}

/** Answers a waiting call when it has found something, or when its time is over. */
export async function answerWhenFound<Found, Answer>(
  wait: Wait<Found>,
  present: (found: Found) => Answer | Promise<Answer>,
  { request, reply, timeoutSeconds, openResponses, heartbeatMs }: HeldRequest,
): Promise<Answer | Static<typeof TimedOut>> {
  try {
    const signal = openResponses.admit(request, reply);
    signal.addEventListener('abort', wait.close, { once: true });
    const deadline = performance.now() + timeoutSeconds * 1000;
    const found = await waitUntil(deadline, { wait, request, signal, heartbeatMs });
    return found === undefined ? { object: 'timeout', timed_out: true } : await present(found);
  } finally {
    wait.close();
  }
}

interface OpenWait<Found> {
  wait: Wait<Found>;
  request: FastifyRequest;
  signal: AbortSignal;
  heartbeatMs: number;
}

async function waitUntil<Found>(
  deadline: number,
  { wait, request, signal, heartbeatMs }: OpenWait<Found>,
): Promise<Found | undefined> {
  for (;;) {
    const remainingMs = deadline - performance.now();
    if (remainingMs <= 0 || signal.aborted) return undefined;
    const found = await wait.next(Math.min(remainingMs, heartbeatMs));
    const refusal = readRefusal(signal);
    if (refusal) throw refusal;
    if (found !== undefined) return found;
    if (remainingMs > heartbeatMs && !signal.aborted) await request.recheckAccess();
  }
}
