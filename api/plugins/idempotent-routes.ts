import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RouteHandlerMethod,
} from 'fastify';
import type { Scope } from '../../domain/identity/scope.ts';
import { sha256 } from '../../platform/crypto.ts';
import { type Database, runBeforeCommit, type Transaction } from '../../platform/database/database.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import {
  createIdempotencyId,
  type IdempotencyStore,
  type StoredResponse,
} from '../../platform/idempotency/idempotency-store.ts';
import { toAppError } from './error-responses.ts';
import { PROBLEM_TYPE, toProblemDocument } from './problem.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Work that the handler depends on but that must not run inside a transaction, such as writing files to storage. Runs
     * before the handler, but not for a repeated request with a stored response.
     */
    prepare?: (request: FastifyRequest) => Promise<void>;
  }
}

export interface IdempotencyOptions {
  database: Database;
  store: IdempotencyStore;
  publicUrl: string;
}

const KEY_PATTERN = /^[\x20-\x7e]{1,255}$/;
const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * Supports `Idempotency-Key` on every POST of an organization. Other POSTs refuse it, because no organization owns their
 * responses: ignored, it would let a client that relies on it announce something twice. Requests that providers sign take
 * effect once without it; repeating another method has no further effect. The response is stored in the transaction of the change, so after a crash
 * either both exist or neither. Handlers must return their result instead of sending it. A route's `prepare` runs first,
 * outside any transaction.
 */
export function installIdempotency(app: FastifyInstance, options: IdempotencyOptions): void {
  app.addHook('onRoute', (route) => {
    const prepare = route.config?.prepare;
    const refusal = route.method === 'POST' && findRefusal(route.config);
    if (refusal)
      route.preValidation = [
        async ({ headers }: FastifyRequest) => {
          if (headers['idempotency-key'] !== undefined)
            throw invalid('/headers/idempotency-key', refusal.message, refusal.fix);
        },
        route.preValidation ?? [],
      ].flat();
    if (
      route.config?.public ||
      route.config?.person ||
      route.config?.staff ||
      (route.method !== 'POST' && !prepare)
    )
      return;
    const handle = route.handler;
    route.handler = async function (this: FastifyInstance, request, reply) {
      // Nothing is sent, and the response is not kept.
      if (request.scope.sendRefusal) return handle.call(this, request, reply);
      if (route.method !== 'POST' || !hasKey(request)) {
        await prepare?.(request);
        return handle.call(this, request, reply);
      }
      return respondOnce(request, reply, () => handle.call(this, request, reply), options);
    } as RouteHandlerMethod;
  });
}

/** Why a POST refuses the key; undefined if it does not. */
function findRefusal(config: FastifyContextConfig | undefined): { message: string; fix: string } | undefined {
  if (config?.staff)
    return {
      message: 'is not supported by operations of staff',
      fix: 'Leave it out. After a request without an answer, see in GET /api/v1/admin/audit-log whether it was made.',
    };
  if (config?.person)
    return {
      message: 'is not supported by operations of your own account',
      fix: 'Leave it out. After a request without an answer, read what it changes before you repeat it: GET /api/v1/user/me, /api/v1/user/me/sessions or /api/v1/auth/mfa/status.',
    };
  if (config?.public === true)
    return {
      message: 'is not supported by operations without a credential',
      fix: 'Leave it out, and repeat a request without an answer: tokens and codes work once, and addresses have one account.',
    };
  return undefined;
}

async function respondOnce(
  request: FastifyRequest,
  reply: FastifyReply,
  handle: () => unknown,
  { database, store, publicUrl }: IdempotencyOptions,
): Promise<string> {
  const { scope } = request;
  const id = createIdempotencyId({
    organizationId: scope.organizationId,
    credentialId: scope.actor.id,
    method: request.method,
    path: getRoutedPath(request),
    key: readKey(request),
  });
  // A refusal is not stored under a derived key: a client that did not ask for idempotency may retry once the cause is gone.
  const keepsRejections = request.headers['idempotency-key'] !== undefined;
  const prepare = request.routeOptions.config.prepare;
  // If `prepare` reads the body itself, the body cannot be compared with the stored request beforehand.
  const alreadyStored =
    prepare && request.body !== undefined ? await findStoredResponse({ database, store }, request, id) : null;
  if (!alreadyStored) await prepare?.(request);
  const requestHash = hashRequest(request);

  const response = await database.transaction(scope, async (transaction) => {
    if (!(await store.claim(transaction, id))) throw requestInProgress();
    const stored = await store.find(transaction, id, { requestHash, validForMs: validForMsOf(request) });
    if (stored === 'different-request') throw idempotencyKeyReused();
    if (stored === 'deleted') throw resultDeleted();
    if (stored) {
      reply.header('idempotent-replayed', 'true');
      return stored;
    }
    const fresh = await runHandler(transaction, { request, reply, handle, publicUrl });
    if (fresh.status >= 400 && !keepsRejections) return fresh;
    await store.save(transaction, {
      id,
      organizationId: scope.organizationId,
      requestHash,
      response: fresh,
    });
    return fresh;
  });
  if (response.contentType === PROBLEM_TYPE) request.problemCode = readCode(response);
  reply.code(response.status).type(response.contentType);
  return response.body;
}

/** Finds a stored response without claiming the key, to skip an unnecessary `prepare`. */
function findStoredResponse(
  { database, store }: Pick<IdempotencyOptions, 'database' | 'store'>,
  request: FastifyRequest,
  id: Buffer,
) {
  return database.transaction(request.scope, (transaction) =>
    store.find(transaction, id, { requestHash: hashRequest(request), validForMs: validForMsOf(request) }),
  );
}

function hashRequest({ scope, body }: FastifyRequest): Buffer {
  return sha256(JSON.stringify([scope.environmentId, body ?? null]));
}

interface HandlerRun {
  request: FastifyRequest;
  reply: FastifyReply;
  handle: () => unknown;
  publicUrl: string;
}

/**
 * Runs the handler inside a savepoint: a rejection rolls back the handler's changes but is stored as the response. An error
 * with `commitsTransaction` keeps the changes.
 */
async function runHandler(
  outer: Transaction,
  { request, reply, handle, publicUrl }: HandlerRun,
): Promise<StoredResponse> {
  const afterCommitHooks: (() => void)[] = [];
  let rejection: AppError | undefined;
  let responseBody = '';
  try {
    await outer.savepoint(async (open) => {
      const beforeCommitHooks: (() => Promise<void>)[] = [];
      const inner: Transaction = Object.assign(open, {
        beforeCommit: (hook: () => Promise<void>) => beforeCommitHooks.push(hook),
        afterCommit: (hook: () => void) => afterCommitHooks.push(hook),
      });
      request.scope = { ...request.scope, transaction: inner } satisfies Scope;
      try {
        const result = await handle();
        await runBeforeCommit(inner, beforeCommitHooks);
        await inner.flush();
        responseBody = String(reply.serialize(result as object));
      } catch (error) {
        const appError = toAppError(error);
        if (!appError.commitsTransaction) throw error;
        rejection = appError;
      }
    });
  } catch (error) {
    rejection = requireStorable(error);
    afterCommitHooks.length = 0;
  }
  for (const hook of afterCommitHooks) outer.afterCommit(hook);
  // The handler's changes commit with the outer transaction, even if the response is not stored.
  if (rejection) requireStorable(rejection);
  if (!rejection) return { status: reply.statusCode, contentType: JSON_TYPE, body: responseBody };
  return {
    status: rejection.status,
    contentType: PROBLEM_TYPE,
    body: JSON.stringify(toProblemDocument(rejection, request.id, publicUrl)),
  };
}

function readCode({ body }: StoredResponse): string {
  const { code } = JSON.parse(body) as { code: string };
  return code;
}

/** A repeated request runs again: permissions, limits and `If-Match`, which is not part of the stored request, may change. */
const NOT_STORED = [401, 403, 408, 412, 428, 429];

/** @throws the error itself if a repeated request must run again. */
function requireStorable(error: unknown): AppError {
  const rejection = toAppError(error);
  if (rejection.status >= 500 || NOT_STORED.includes(rejection.status)) throw error;
  return rejection;
}

/** Returns the route and its parameters: requests that differ only in query or encoding of the path are the same. */
function getRoutedPath({ routeOptions, params }: FastifyRequest): string {
  return JSON.stringify([routeOptions.url, params]);
}

function hasKey({ headers, toolCall }: FastifyRequest): boolean {
  return headers['idempotency-key'] !== undefined || toolCall?.derivedKey !== undefined;
}

function validForMsOf({ headers, toolCall }: FastifyRequest): number | undefined {
  return headers['idempotency-key'] === undefined ? toolCall?.derivedKey?.validForMs : undefined;
}

function readKey({ headers, toolCall }: FastifyRequest): string {
  const key = headers['idempotency-key'];
  // A client cannot name it: a header has no control characters.
  if (key === undefined && toolCall?.derivedKey) return `\u0000${toolCall.derivedKey.key}`;
  if (typeof key === 'string' && KEY_PATTERN.test(key)) return key;
  throw invalid(
    '/headers/idempotency-key',
    'must be 1 to 255 printable ASCII characters',
    'Use a new random UUID for each operation.',
  );
}

function requestInProgress(): AppError {
  return new AppError('request_in_progress', {
    detail: 'A request with this Idempotency-Key is still running.',
    fix: 'Wait a moment and repeat the request with the same key.',
    headers: { 'retry-after': '1' },
  });
}

function resultDeleted(): AppError {
  return new AppError('not_found', {
    detail: 'What the first request with this Idempotency-Key created was deleted, and its response with it.',
    fix: 'Nothing was repeated. Use a new key if you want to create it once more.',
  });
}

function idempotencyKeyReused(): AppError {
  return new AppError('idempotency_key_reused', {
    detail: 'This Idempotency-Key was used for a request with another body or environment.',
    fix: 'Use a new key for a new request, or repeat the earlier request unchanged.',
  });
}
