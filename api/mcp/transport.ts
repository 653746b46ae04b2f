import { createMcpHandler, type Server } from '@modelcontextprotocol/server';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Several files of 256 KiB as base64, or a long text. */
export const BODY_LIMIT_BYTES = 2 * 1024 * 1024;

/** Revisions since 2025-06-18 have none. Each message of one would be a call that is neither limited nor counted. */
const SEVERAL_MESSAGES = {
  jsonrpc: '2.0',
  id: null,
  error: { code: -32600, message: 'Send one message in a request: batches are not supported.' },
};

export interface TransportOptions {
  url: string;
  /** Serves one message: nothing is kept for the next one. */
  createServer(request: FastifyRequest, disconnected: AbortSignal): Server;
}

/** Answers requests of streamable HTTP without sessions: revision 2026-07-28, and those of 2025. */
export function createTransport({ url, createServer }: TransportOptions) {
  /** @throws AppError the refusal of the rate limit, which the operation of a tool call states itself. */
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const message = parse(request.body as Buffer | undefined);
    if (request.rateRefusal && message?.method !== 'tools/call') throw request.rateRefusal;
    if (Array.isArray(message)) return reply.code(400).send(SEVERAL_MESSAGES);
    const signal = readDisconnect(reply);
    const { fetch } = createMcpHandler(() => createServer(request, signal), {
      maxRequestBodySize: BODY_LIMIT_BYTES,
      onerror: (error) => request.log.debug({ err: error }, 'MCP request rejected'),
    });
    const response = await fetch(toWebRequest(request, url, signal));
    // `keep-alive`, even if the client or a process that stops wants the connection closed.
    response.headers.delete('connection');
    return response;
  };
}

/** Undefined if it is no JSON, which the protocol has an answer for. */
function parse(body: Buffer | undefined): { method?: unknown } | null | undefined {
  try {
    return JSON.parse(String(body));
  } catch {
    return undefined;
  }
}

function readDisconnect({ raw }: FastifyReply): AbortSignal {
  const controller = new AbortController();
  raw.once('close', () => controller.abort());
  return controller.signal;
}

function toWebRequest({ headers, body }: FastifyRequest, url: string, signal: AbortSignal): Request {
  const given = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, [value].flat().join(', ')] as [string, string]],
  );
  const bytes = body as Buffer<ArrayBuffer> | undefined;
  return new Request(url, { method: 'POST', headers: given, body: bytes ?? '', signal });
}
