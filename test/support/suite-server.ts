import { setTimeout as pause } from 'node:timers/promises';
import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  createRequestStateCodec,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import Fastify from 'fastify';
import { createOriginRules } from '../../api/mcp/origins.ts';
import { createTransport } from '../../api/mcp/transport.ts';

/** The tools, prompts and resources that scenarios of the official suite ask for, with the answers that they expect. */

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const SILENCE = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=';

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });
const image = { type: 'image' as const, data: PIXEL, mimeType: 'image/png' };
const resource = (uri: string, mimeType: string, value: string) => ({
  type: 'resource' as const,
  resource: { uri, mimeType, text: value },
});

const states = createRequestStateCodec<{ step: number }>({ key: 'the suite knows no secret of this server' });
const askFor = (message: string, field: string, type: 'string' | 'boolean' = 'string') => ({
  method: 'elicitation/create' as const,
  params: {
    message,
    requestedSchema: { type: 'object' as const, properties: { [field]: { type } }, required: [field] },
  },
});
const sample = (question: string) => ({
  method: 'sampling/createMessage' as const,
  params: {
    messages: [{ role: 'user' as const, content: { type: 'text' as const, text: question } }],
    maxTokens: 100,
  },
});
const ROOTS = { method: 'roots/list' as const, params: {} };
const needsInput = (inputRequests: Record<string, unknown>, requestState?: string) =>
  ({ resultType: 'input_required', inputRequests, ...(requestState ? { requestState } : {}) }) as never;

type Behavior = (context: ServerContext) => Promise<unknown> | unknown;
const responses = ({ mcpReq }: ServerContext) => mcpReq.inputResponses ?? {};
const readState = ({ mcpReq }: ServerContext) => mcpReq.requestState<{ step: number }>();
const capabilitiesOf = ({ mcpReq }: ServerContext) =>
  ((mcpReq.envelope as Record<string, unknown> | undefined)?.[CLIENT_CAPABILITIES_META_KEY] ?? {}) as Record<
    string,
    unknown
  >;

async function reportSteps({ mcpReq }: ServerContext) {
  for (const progress of [0, 50, 100]) {
    const token = mcpReq._meta?.progressToken;
    if (token !== undefined) {
      const params = { progressToken: token, progress, total: 100 };
      await mcpReq.notify({ method: 'notifications/progress', params });
    }
    await pause(50);
  }
  return text('Done');
}

async function logSteps({ mcpReq }: ServerContext) {
  for (const step of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
    await mcpReq.log('info', step);
    await pause(50);
  }
  return text('Done');
}

async function takeTwoSteps(context: ServerContext) {
  const step = readState(context)?.step;
  const ask = async (next: number, field: string) =>
    needsInput(
      { [`step${next}`]: askFor(`Step ${next}`, field) },
      await states.mint({ step: next }, context),
    );
  if (step === undefined) return ask(1, 'name');
  return step === 1 ? ask(2, 'color') : text('Both steps are done');
}

async function confirm(context: ServerContext) {
  if (acceptedContent(responses(context), 'confirm') && readState(context)) return text('state-ok');
  return needsInput(
    { confirm: askFor('Please confirm', 'ok', 'boolean') },
    await states.mint({ step: 1 }, context),
  );
}

const TOOLS: Record<string, Behavior> = {
  test_simple_text: () => text('This is a simple text response for testing.'),
  test_image_content: () => ({ content: [image] }),
  test_audio_content: () => ({ content: [{ type: 'audio', data: SILENCE, mimeType: 'audio/wav' }] }),
  test_embedded_resource: () => ({
    content: [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  }),
  test_multiple_content_types: () => ({
    content: [
      ...text('Multiple content types test:').content,
      image,
      resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ],
  }),
  test_error_handling: () => ({
    ...text('This tool intentionally returns an error for testing'),
    isError: true,
  }),
  test_tool_with_progress: reportSteps,
  test_tool_with_logging: logSteps,
  test_logging_tool: logSteps,
  test_streaming_elicitation: () => needsInput({ name: askFor('What is your name?', 'name') }),
  test_missing_capability: (context) => {
    if ('sampling' in capabilitiesOf(context)) return text('Done');
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
  },
  test_input_required_result_elicitation: (context) => {
    const name = acceptedContent(responses(context), 'user_name')?.name;
    return typeof name === 'string'
      ? text(`Hello, ${name}!`)
      : needsInput({ user_name: askFor('What is your name?', 'name') });
  },
  test_input_required_result_sampling: (context) =>
    'capital_question' in responses(context)
      ? text(JSON.stringify(responses(context).capital_question))
      : needsInput({ capital_question: sample('What is the capital of France?') }),
  test_input_required_result_list_roots: (context) =>
    'client_roots' in responses(context)
      ? text(JSON.stringify(responses(context).client_roots))
      : needsInput({ client_roots: ROOTS }),
  test_input_required_result_request_state: confirm,
  test_input_required_result_tampered_state: confirm,
  test_input_required_result_multiple_inputs: async (context) =>
    ['user_name', 'greeting', 'client_roots'].every((key) => key in responses(context))
      ? text(JSON.stringify(responses(context)))
      : needsInput(
          {
            user_name: askFor('What is your name?', 'name'),
            greeting: sample('Generate a greeting'),
            client_roots: ROOTS,
          },
          await states.mint({ step: 1 }, context),
        ),
  test_input_required_result_multi_round: takeTwoSteps,
  test_input_required_result_capabilities: (context) => {
    const declared = capabilitiesOf(context);
    return needsInput({
      ...('elicitation' in declared ? { name: askFor('What is your name?', 'name') } : {}),
      ...('sampling' in declared ? { question: sample('What is the capital of France?') } : {}),
    });
  },
};

const prompt = (content: object) => ({ messages: [{ role: 'user', content }] });
const PROMPTS: Record<
  string,
  { arguments: string[]; get(args: Record<string, string>, context: ServerContext): unknown }
> = {
  test_simple_prompt: {
    arguments: [],
    get: () => prompt({ type: 'text', text: 'This is a simple prompt for testing.' }),
  },
  test_prompt_with_arguments: {
    arguments: ['arg1', 'arg2'],
    get: ({ arg1, arg2 }) =>
      prompt({ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` }),
  },
  test_prompt_with_embedded_resource: {
    arguments: ['resourceUri'],
    get: ({ resourceUri = '' }) => prompt(resource(resourceUri, 'text/plain', 'Embedded for testing.')),
  },
  test_prompt_with_image: { arguments: [], get: () => prompt(image) },
  test_input_required_result_prompt: {
    arguments: [],
    get: (_args, context) =>
      acceptedContent(responses(context), 'user_context')
        ? prompt({ type: 'text', text: 'With context' })
        : needsInput({ user_context: askFor('What context should the prompt use?', 'context') }),
  },
};

function readResource(uri: string) {
  if (uri === 'test://static-text')
    return {
      contents: [{ uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
    };
  if (uri === 'test://static-binary') return { contents: [{ uri, mimeType: 'image/png', blob: PIXEL }] };
  const [, id] = /^test:\/\/template\/(\w+)\/data$/.exec(uri) ?? [];
  if (id === undefined) throw new ResourceNotFoundError(uri);
  const value = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
  return { contents: [{ uri, mimeType: 'application/json', text: value }] };
}

function createSuiteServer(): Server {
  const server = new Server(
    { name: 'suite', version: '1' },
    {
      capabilities: { tools: {}, prompts: {}, resources: {}, completions: {}, logging: {} },
      requestState: { verify: states.verify },
    },
  );
  const fail = (name: string): never => {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown: ${name}`);
  };
  server.setRequestHandler('tools/list', () => ({
    tools: Object.keys(TOOLS).map((name) => ({
      name,
      description: name,
      inputSchema: { type: 'object', properties: {} },
    })),
  }));
  server.setRequestHandler(
    'tools/call',
    async ({ params }, context) =>
      (await (TOOLS[params.name] ?? (() => fail(params.name)))(context)) as never,
  );
  server.setRequestHandler('prompts/list', () => ({
    prompts: Object.entries(PROMPTS).map(([name, { arguments: names }]) => ({
      name,
      description: name,
      arguments: names.map((argument) => ({ name: argument, required: true })),
    })),
  }));
  server.setRequestHandler(
    'prompts/get',
    async ({ params }, context) =>
      ((await PROMPTS[params.name]?.get(params.arguments ?? {}, context)) ?? fail(params.name)) as never,
  );
  server.setRequestHandler('resources/list', () => ({
    resources: ['test://static-text', 'test://static-binary'].map((uri) => ({
      uri,
      name: uri,
      description: uri,
    })),
  }));
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [
      { uriTemplate: 'test://template/{id}/data', name: 'template', description: 'template' },
    ],
  }));
  server.setRequestHandler('resources/read', ({ params }) => readResource(params.uri));
  server.setRequestHandler('completion/complete', () => ({ completion: { values: [] } }));
  return server;
}

/** Serves them on the transport of `/mcp`, behind its check of hosts and origins. */
export async function startSuiteServer() {
  const app = Fastify();
  const url = 'http://localhost/mcp';
  const origins = createOriginRules({ PUBLIC_URL: url, MCP_ALLOWED_ORIGINS: undefined });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (_request: unknown, body: Buffer) => body);
  app.post(
    '/mcp',
    { onRequest: async (request) => origins.require(request) },
    createTransport({ url, createServer: createSuiteServer }),
  );
  app.setErrorHandler((error: { status?: number }, _request, reply) =>
    reply.code(error.status ?? 500).send(),
  );
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as { port: number };
  return { url: `http://localhost:${port}/mcp`, stop: () => app.close() };
}
