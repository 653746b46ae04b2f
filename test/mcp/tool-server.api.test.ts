import { expect, test } from '@jest/globals';
import Fastify from 'fastify';
import type { Operations } from '../../api/mcp/operations.ts';
import { createToolList } from '../../api/mcp/tool-list.ts';
import { createToolNames } from '../../api/mcp/tool-names.ts';
import { createToolServer } from '../../api/mcp/tool-server.ts';
import { createTransport } from '../../api/mcp/transport.ts';
import { connectTools } from '../support/mcp-client.ts';

/** Serves the tools with operations that answer as told. */
async function serve(call: Operations['call'], name = 'whoami', args = {}) {
  const operations: Operations = {
    isPermitted: () => true,
    describe: (id) => `GET /api/v1/${id}`,
    call,
  };
  const tools = createToolList(operations);
  const nameTools = createToolNames(operations);
  const app = Fastify();
  app.decorateRequest('scope');
  app.addHook('onRequest', async (request) => {
    request.scope = { environmentId: 'env_test' } as never;
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (_request: unknown, body: Buffer) => body);
  const createServer: Parameters<typeof createTransport>[0]['createServer'] = (request, disconnected) =>
    createToolServer({ tools, operations, nameTools, request, disconnected });
  app.post('/mcp', createTransport({ url: 'http://localhost/mcp', createServer }));
  const client = await connectTools({ app }, 'any');
  const answer = await client.call(name, args);
  await client.close();
  await app.close();
  return answer;
}

test('an error of the service itself tells nothing of its inside', async () => {
  const { isError, text, answer } = await serve(async () => {
    throw new Error('password authentication failed for user "api"');
  });
  expect({ isError, code: answer.code }).toEqual({ isError: true, code: 'internal' });
  expect(answer.fix).toEqual(expect.any(String));
  expect(text).not.toContain('password');
});

test('a process that stops asks for a repetition', async () => {
  const { isError, answer } = await serve(async () => ({
    status: 503,
    body: { statusCode: 503, error: 'Service Unavailable' },
    isReplayed: false,
  }));
  expect({ isError, answer }).toMatchObject({
    isError: true,
    answer: { code: 'unavailable', fix: expect.stringContaining('again') },
  });
});

test.each([
  [300, 50],
  [undefined, 50],
  [20, 20],
])('a wait of %s seconds ends after %s, before hosts give up', async (asked, granted) => {
  let query: unknown;
  const { answer } = await serve(
    async (_id, input) => {
      ({ query } = input);
      return { status: 200, body: { object: 'timeout', timed_out: true }, isReplayed: false };
    },
    'wait_for_message',
    { inbox_id: 'inb_test', ...(asked === undefined ? {} : { timeout_seconds: asked }) },
  );
  expect(answer.timed_out).toBe(true);
  expect(query).toMatchObject({ timeout_seconds: granted });
});
