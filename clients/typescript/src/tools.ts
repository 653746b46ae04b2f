import { AgentEmailError } from './errors.ts';
import type { Requester, RequestOptions } from './requests.ts';

/** A tool for a model, as the service describes it to hosts (MCP). */
export interface AgentTool {
  name: string;
  description: string;
  /** A JSON Schema of an object. */
  inputSchema: ToolSchema;
  /** Changes nothing. */
  isReadOnly: boolean;
  /** What the model reads. A refusal is an answer, too (`object: "error"`), so that the model can act on it. */
  call(input: unknown, options?: RequestOptions): Promise<Record<string, unknown>>;
}

export interface ToolSchema {
  type: 'object';
  properties: Record<string, object>;
  required?: string[];
  additionalProperties?: boolean;
}

export interface ToolOptions {
  /** Only these. Default: all that the key permits. */
  names?: readonly string[] | undefined;
}

interface ListedTool {
  name: string;
  description?: string;
  inputSchema: ToolSchema;
  annotations?: { readOnlyHint?: boolean; idempotentHint?: boolean };
}

interface Message<Result> {
  id?: number;
  result?: Result;
  error?: { message: string };
}

/** A tool waits for up to 50 seconds. */
const TIMEOUT_MS = 75_000;
const HEADERS = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' };

/** @throws AgentEmailError if the key does not permit one of `names`. */
export async function listTools(requester: Requester, { names }: ToolOptions = {}): Promise<AgentTool[]> {
  const { tools } = await send<{ tools: ListedTool[] }>(requester, 'tools/list', {}, {});
  const missing = names?.filter((name) => !tools.some((tool) => tool.name === name)) ?? [];
  if (missing.length > 0) throw new AgentEmailError(`The key permits no tool ${missing.join(', ')}.`);
  return tools
    .filter(({ name }) => names === undefined || names.includes(name))
    .map(({ name, description = '', inputSchema, annotations = {} }) => ({
      name,
      description,
      inputSchema,
      isReadOnly: annotations.readOnlyHint === true,
      async call(input, options = {}) {
        // A send that is repeated is recognized by the service. What else changes something is not repeated.
        const isRepeatable =
          annotations.readOnlyHint ||
          annotations.idempotentHint ||
          'idempotency_key' in inputSchema.properties;
        const own = isRepeatable ? options : { ...options, maxRetries: 0 };
        const params = { name, arguments: input ?? {} };
        return (
          await send<{ structuredContent: Record<string, unknown> }>(requester, 'tools/call', params, own)
        ).structuredContent;
      },
    }));
}

async function send<Result>(
  requester: Requester,
  method: string,
  params: object,
  options: RequestOptions,
): Promise<Result> {
  const message = { jsonrpc: '2.0', id: 1, method, params };
  const headers = { ...options.headers, ...HEADERS };
  const own = { ...options, timeoutMs: options.timeoutMs ?? TIMEOUT_MS, headers };
  const answer: unknown = await requester.call({
    verb: 'POST',
    path: '/mcp',
    body: true,
    params: message,
    options: own,
  });
  const { result, error } = (typeof answer === 'string' ? readLast(answer) : answer) as Message<Result>;
  if (error) throw new AgentEmailError(`The service refused ${method}: ${error.message}`);
  if (!result) throw new AgentEmailError(`The service answered nothing to ${method}.`);
  return result;
}

/** The answer is the last event of a stream, after notices of progress. */
function readLast(text: string): unknown {
  const data = text.split(/\r?\n/).flatMap((line) => (line.startsWith('data:') ? [line.slice(5)] : []));
  return JSON.parse(data.at(-1) ?? 'null');
}
