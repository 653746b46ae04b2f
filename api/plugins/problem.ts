import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AppError } from '../../platform/errors.ts';

export const PROBLEM_TYPE = 'application/problem+json';

/** An error as clients see it (RFC 9457). */
export interface ProblemDocument {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  request_id: string;
  fix: string;
  errors?: { path: string; message: string }[];
  [extension: string]: unknown;
}

/** The page that explains the codes; the `type` of a problem is its place there. */
export const ERRORS_PAGE = '/docs/errors';

export function problemOf(error: AppError, requestId: string, publicUrl: string): ProblemDocument {
  return {
    // First, so that none takes the place of a standard member.
    ...error.extensions,
    type: `${publicUrl}${ERRORS_PAGE}#${error.code}`,
    title: error.title,
    status: error.status,
    detail: error.detail,
    code: error.code,
    request_id: requestId,
    fix: error.fix,
    ...(error.errors ? { errors: error.errors } : {}),
  };
}

/** A body this large that nobody reads is not worth a connection. */
const WORTH_READING_BYTES = 65_536;

export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  error: AppError,
  publicUrl: string,
): void {
  reply.code(error.status).headers(error.headers).type(PROBLEM_TYPE);
  if (error.code === 'payload_too_large' || leavesBodyUnread(request)) reply.header('connection', 'close');
  // As text, so that no route's response schema touches it.
  reply.send(JSON.stringify(problemOf(error, request.id, publicUrl)));
}

/** Answered before the body came: to keep the connection, all of it would have to be received and dropped. */
function leavesBodyUnread({ raw, headers }: FastifyRequest): boolean {
  if (raw.complete) return false;
  return 'transfer-encoding' in headers || Number(headers['content-length'] ?? 0) > WORTH_READING_BYTES;
}
