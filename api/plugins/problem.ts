import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AppError } from '../../platform/errors.ts';
import { describeField, toClientPath } from './client-path.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The code of the problem that the request was answered with; undefined without one. */
    problemCode: string | undefined;
  }
}

export const PROBLEM_TYPE = 'application/problem+json';

/** The problem document of an error response (RFC 9457). */
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

/** The page that explains the codes; the `type` of a problem links to its anchor there. */
export const ERRORS_PAGE = '/docs/errors';

export function toProblemDocument(error: AppError, requestId: string, publicUrl: string): ProblemDocument {
  return {
    // Extensions are first, so they cannot override a standard member.
    ...error.extensions,
    type: `${publicUrl}${ERRORS_PAGE}#${error.code}`,
    title: error.title,
    status: error.status,
    detail: detailOf(error),
    code: error.code,
    request_id: requestId,
    fix: error.fix,
    ...(error.errors
      ? { errors: error.errors.map(({ path, message }) => ({ path: toClientPath(path), message })) }
      : {}),
  };
}

/** Errors of the domain say what is wrong with a field, without its name. */
function detailOf({ detail, errors = [] }: AppError): string {
  const [first] = errors;
  return first?.message === detail && /^\p{Ll}/u.test(detail) ? describeField(first) : detail;
}

/** For a larger unread body, closing the connection is cheaper than reading it. */
const MAX_DISCARDED_BODY_BYTES = 65_536;

export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  error: AppError,
  publicUrl: string,
): void {
  if (isOpenedByPerson(request)) return void sendProblemPage(request, reply, error);
  sendFailure(request, reply, error, {
    type: PROBLEM_TYPE,
    document: toProblemDocument(error, request.id, publicUrl),
  });
}

/** Answers with an error in the format of its protocol, also while the body still arrives. */
export function sendFailure(
  request: FastifyRequest,
  reply: FastifyReply,
  error: AppError,
  format: { type: string; document: object },
): void {
  request.problemCode = error.code;
  // Sent as text, because Fastify would apply a response schema to an object.
  const document = JSON.stringify(format.document);
  reply.code(error.status).headers(error.headers).type(format.type);
  const unread = hasUnreadBody(request);
  if (error.code === 'payload_too_large' || unread) reply.header('connection', 'close');
  if (!unread) return void reply.send(document);
  reply.header('content-length', Buffer.byteLength(document));
  const rest = error.headers.connection === 'close' ? closeUnread : respondThenLinger;
  reply.send(Readable.from(rest(document, request.raw)));
}

/** A browser that opens an address, for example that of a form which was refused. */
function isOpenedByPerson({ method, url, headers }: FastifyRequest): boolean {
  return method === 'GET' && !url.startsWith('/api/') && /\btext\/html\b/.test(headers.accept ?? '');
}

function sendProblemPage(request: FastifyRequest, reply: FastifyReply, problem: AppError): void {
  request.problemCode = problem.code;
  const html = request.server.standalonePages.render(request, reply, { kind: 'problem', problem });
  reply.code(problem.status).headers(problem.headers).type('text/html; charset=utf-8').send(html);
}

/** Whether the response precedes the body. Keeping the connection would then mean receiving and discarding the body. */
function hasUnreadBody({ raw, headers }: FastifyRequest): boolean {
  if (raw.complete || raw.readableEnded) return false;
  return 'transfer-encoding' in headers || Number(headers['content-length'] ?? 0) > MAX_DISCARDED_BODY_BYTES;
}

const CLOSE_DELAY_MS = 1_000;

/**
 * For a refusal that protects the process from reading: the rest of the body stays with the client, which has a moment to read
 * the response.
 */
async function* closeUnread(document: string, raw: IncomingMessage): AsyncGenerator<string> {
  yield document;
  raw.pause();
  await pause(CLOSE_DELAY_MS, undefined, { ref: false });
}

const MAX_LINGER_MS = 30_000;
const MAX_LINGER_BYTES = 64 * 1024 * 1024;

/**
 * Sends the response immediately but closes the connection only when the client has stopped sending, within limits (RFC
 * 9112 section 9.6). Many clients read the response only after sending everything: closing earlier resets the connection,
 * and they see a broken pipe instead of the error.
 */
async function* respondThenLinger(document: string, raw: IncomingMessage): AsyncGenerator<string> {
  yield document;
  await new Promise<void>((resolve) => {
    let receivedBytes = 0;
    const timer = setTimeout(resolve, MAX_LINGER_MS).unref();
    // The previous reader of the body has stopped.
    raw.unpipe();
    raw.on('data', (chunk: Buffer) => {
      receivedBytes += chunk.length;
      if (receivedBytes > MAX_LINGER_BYTES) resolve();
    });
    for (const event of ['end', 'close', 'error'] as const)
      raw.once(event, () => {
        clearTimeout(timer);
        resolve();
      });
    raw.resume();
  });
}
