import { createMcpHandler, type McpHttpHandler } from '@modelcontextprotocol/server';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { invalid } from '../../platform/errors.ts';
import type { Operations } from './operations.ts';
import type { OriginCheck } from './origins.ts';
import { createToolList } from './tool-list.ts';
import { createToolServer } from './tool-server.ts';

export interface McpRoutesOptions {
  operations: Operations;
  checkOrigin: OriginCheck;
  publicUrl: string;
}

/** Several files of 256 KiB as base64, or the longest text. */
const BODY_LIMIT_BYTES = 2 * 1024 * 1024;

/**
 * Serves the tools to hosts of agents (Model Context Protocol, streamable HTTP without sessions). What is wrong with the
 * request itself is a problem document; what is wrong with a message is an answer of the protocol.
 */
export const mcpRoutes =
  ({ operations, checkOrigin, publicUrl }: McpRoutesOptions): FastifyPluginAsync =>
  async (app) => {
    const tools = createToolList(operations);
    // The protocol has answers of its own for a body that is not JSON.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser(
      '*',
      { parseAs: 'buffer' },
      async (_request: FastifyRequest, body: Buffer) => body,
    );

    app.post(
      '/mcp',
      {
        bodyLimit: BODY_LIMIT_BYTES,
        config: { credential: 'agent', isUncounted: true },
        // The protocol checks the body.
        schema: { hide: true, operationId: 'mcp.post', body: {} },
        onRequest: async (request) => {
          checkOrigin(request);
          if (Object.keys(request.query as object).length > 0)
            throw invalid('/query', 'must be empty', 'Send the credential in the header Authorization.');
        },
      },
      async (request, reply) => {
        const message = parse(request.body as Buffer | undefined);
        if (request.rateRefusal && message?.method !== 'tools/call') throw request.rateRefusal;
        if (Array.isArray(message)) return reply.code(400).send(SEVERAL_MESSAGES);
        const disconnected = readDisconnect(reply);
        const handler: McpHttpHandler = createMcpHandler(
          () => createToolServer({ tools, operations, request, disconnected }),
          {
            maxRequestBodySize: BODY_LIMIT_BYTES,
            onerror: (error) => request.log.debug({ err: error }, 'MCP request rejected'),
          },
        );
        return handler.fetch(toWebRequest(request, `${publicUrl}/mcp`, disconnected));
      },
    );
  };

/** Revisions since 2025-06-18 have none. Each message of one would be a call that is neither limited nor counted. */
const SEVERAL_MESSAGES = {
  jsonrpc: '2.0',
  id: null,
  error: { code: -32600, message: 'Send one message in a request: batches are not supported.' },
};

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
