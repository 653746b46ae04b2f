import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { invalid } from '../../platform/errors.ts';
import type { Operations } from './operations.ts';
import { type OriginRules, PREFLIGHT_HEADERS } from './origins.ts';
import { createToolList } from './tool-list.ts';
import { createToolNames } from './tool-names.ts';
import { createToolServer } from './tool-server.ts';
import { BODY_LIMIT_BYTES, createTransport } from './transport.ts';

export interface McpRoutesOptions {
  operations: Operations;
  origins: OriginRules;
  publicUrl: string;
}

/**
 * Serves the tools to hosts of agents (Model Context Protocol). What is wrong with the request itself is a problem document;
 * what is wrong with a message is an answer of the protocol.
 */
export const mcpRoutes =
  ({ operations, origins, publicUrl }: McpRoutesOptions): FastifyPluginAsync =>
  async (app) => {
    const tools = createToolList(operations);
    const nameTools = createToolNames(operations);
    const answer = createTransport({
      url: `${publicUrl}/mcp`,
      createServer: (request, disconnected) =>
        createToolServer({ tools, operations, nameTools, request, disconnected }),
    });
    // The protocol has answers of its own for a body that is not JSON.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser(
      '*',
      { parseAs: 'buffer' },
      async (_request: FastifyRequest, body: Buffer) => body,
    );
    app.addHook('onSend', async (request, reply) => {
      reply.headers(origins.headersFor(request));
    });
    app.options(
      '/mcp',
      { config: { public: true }, schema: { hide: true, operationId: 'mcp.preflight' } },
      async (request, reply) => {
        origins.require(request);
        return reply.code(204).headers(PREFLIGHT_HEADERS).send();
      },
    );
    app.post(
      '/mcp',
      {
        bodyLimit: BODY_LIMIT_BYTES,
        config: { credential: 'agent', isUncounted: true },
        // The protocol checks the body.
        schema: { hide: true, operationId: 'mcp.post', body: {} },
        onRequest: async (request) => {
          origins.require(request);
          if (Object.keys(request.query as object).length > 0)
            throw invalid('/query', 'must be empty', 'Send the credential in the header Authorization.');
        },
      },
      answer,
    );
  };
