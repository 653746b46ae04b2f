import { AsyncLocalStorage } from 'node:async_hooks';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Authentication } from '../../domain/identity/authentication.ts';
import type { AppError } from '../../platform/errors.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The tool call that this operation runs for; undefined for a request of a client. */
    toolCall: ToolCall | undefined;
    /** Why the rate limit refuses a request to `/mcp`. The operation of its tool call then refuses it, and may announce that. */
    rateRefusal: AppError | undefined;
    /** Whether a request to `/mcp` became a call of an operation, which is counted and recorded in its place. */
    ranOperation: boolean;
  }
}

/** A call of a tool at `/mcp`. Its operation runs as a request inside this process. */
export interface ToolCall {
  /** The request to `/mcp`. */
  request: FastifyRequest;
  /** What the credential of the request is. Without it the operation authenticates the credential itself. */
  authentication?: Authentication;
  /** Aborts when the client cancels the call or disconnects. */
  signal: AbortSignal;
  /** Stands for the `Idempotency-Key` that the call does not name. */
  derivedKey?: DerivedKey;
}

export interface DerivedKey {
  key: string;
  /** A later call with the same key is a new one. */
  validForMs: number;
}

const calls = new AsyncLocalStorage<ToolCall>();

/** Runs what calls an operation, whose request then knows its tool call. */
export const runToolCall = <Result>(call: ToolCall, work: () => Promise<Result>): Promise<Result> =>
  // `inject` begins when its result is awaited, which must happen in here.
  calls.run(call, async () => work());

/** An operation has the request id of its tool call, so the log shows both under one id. */
export const findRequestId = (): string | undefined => calls.getStore()?.request.id;

/** The connection of the client, also for an operation that runs for its tool call. */
export const connectionOf = ({ toolCall, raw }: FastifyRequest) => (toolCall?.request.raw ?? raw).socket;

/** Lets operations run for tool calls. Install before every hook that depends on the call. */
export function installToolCalls(app: FastifyInstance): void {
  app.decorateRequest('toolCall');
  app.decorateRequest('rateRefusal');
  app.decorateRequest('ranOperation', false);
  app.addHook('onRequest', async (request, reply) => {
    const call = calls.getStore();
    if (!call) return;
    request.toolCall = call;
    call.request.ranOperation = true;
    const end = () => reply.raw.destroy();
    if (call.signal.aborted) return end();
    call.signal.addEventListener('abort', end, { once: true });
    reply.raw.once('close', () => call.signal.removeEventListener('abort', end));
  });
}
