import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { toDatabaseError } from '../../platform/database/database-errors.ts';
import { AppError, type ErrorCode } from '../../platform/errors.ts';
import type { NearestOperation, OperationFinder } from './nearest-operation.ts';
import { sendProblem } from './problem.ts';

/** Problem details for errors that Fastify raises itself. */
const FASTIFY_ERRORS_BY_STATUS: Record<number, { code: ErrorCode; detail: string; fix: string }> = {
  415: {
    code: 'unsupported_media_type',
    detail: 'The operation does not support the content type of the body.',
    fix: 'Send JSON with "Content-Type: application/json".',
  },
};

/** One handler for all errors: every error response is a problem document, and unknown errors reveal no internals. */
export function installErrors(
  app: FastifyInstance,
  { publicUrl, operations }: { publicUrl: string; operations: OperationFinder },
): void {
  app.setErrorHandler(async (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const failure = request.scope?.presumption ? await findRefusal(error, request, reply) : error;
    sendProblem(request, reply, readFailure(failure, request), publicUrl);
    return reply;
  });
  app.setNotFoundHandler(async (request, reply) => {
    sendProblem(request, reply, pathNotFound(await operations.find(request)), publicUrl);
    return reply;
  });
}

/** A credential that is refused now learns nothing of what else is wrong. */
function findRefusal(error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  return request.confirmAccess(reply).then(
    () => error,
    (refusal: unknown) => refusal,
  );
}

/** Why a request fails. Writes it to the log. */
export function readFailure(error: unknown, request: FastifyRequest): AppError {
  // A refused send stays refused, whatever else is wrong with it.
  const refusal = request.scope?.sendRefusal?.error;
  const isAborted = !request.raw.complete && request.raw.readableAborted;
  const problem =
    refusal ?? payloadTooLarge(error, request) ?? (isAborted ? malformedRequest() : toAppError(error));
  // The client is gone in the middle of its body: what failed because of that is no error of the service.
  if (isAborted) request.log.info({ err: error }, 'request aborted');
  else if (problem.status >= 500)
    request.log.error({ err: problem.cause ?? error, code: problem.code }, 'request failed');
  else request.log.debug({ code: problem.code, detail: problem.detail }, 'request rejected');
  return problem;
}

/** The error for an unknown path. */
export function pathNotFound(nearest?: NearestOperation): AppError {
  return new AppError('not_found', {
    detail: 'The path does not exist.',
    fix: nearest
      ? `Did you mean ${nearest.call}? All operations are at /openapi.json.`
      : 'Find the operation at /openapi.json. Paths begin with /api/v1.',
    ...(nearest ? { extensions: { nearest_operation: nearest.operation } } : {}),
  });
}

/** The error for requests that violate HTTP itself, before a path or body has been read. */
export function malformedRequest(): AppError {
  return new AppError('validation_error', {
    detail: 'The request is malformed.',
    fix: 'Check the URL, the headers and the Content-Length of the request.',
  });
}

export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  return toDatabaseError(error) ?? fromFastifyError(error) ?? internalError(error);
}

interface FastifyError {
  statusCode: number;
}

function fromFastifyError(error: unknown): AppError | undefined {
  if (!isFastifyError(error)) return undefined;
  // A path segment is longer than any id.
  if (error.statusCode === 414) return pathNotFound();
  const known = FASTIFY_ERRORS_BY_STATUS[error.statusCode];
  if (known) return new AppError(known.code, known);
  return error.statusCode < 500 ? malformedRequest() : undefined;
}

const MIB_BYTES = 1024 * 1024;

/** States the limit that applied, because operations that carry a message accept larger bodies. */
function payloadTooLarge(error: unknown, { routeOptions }: FastifyRequest): AppError | undefined {
  if (!isFastifyError(error) || error.statusCode !== 413) return undefined;
  return new AppError('payload_too_large', {
    detail: 'The body is larger than this operation accepts.',
    fix: `Send at most ${routeOptions.bodyLimit / MIB_BYTES} MiB.`,
  });
}

function isFastifyError(error: unknown): error is Error & FastifyError {
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number';
}

function internalError(cause: unknown): AppError {
  return new AppError('internal', {
    detail: 'The request failed because of an internal error, which has been logged.',
    fix: 'Repeat it later; for a POST, use the same Idempotency-Key. If it keeps failing, report the request_id.',
    cause,
  });
}
