import { createInterface } from 'node:readline';
import { classify } from '../classify.ts';
import { CliError, EXIT } from '../cli-error.ts';
import type { Context } from '../context.ts';
import { openSession, type Session } from '../session.ts';
import { readServerEvents } from './server-events.ts';

/** A message of JSON-RPC 2.0. */
interface Message {
  jsonrpc: '2.0';
  id?: string | number | null;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
}

type Id = string | number;

const VERSION_META = 'io.modelcontextprotocol/protocolVersion';
/** Revision 2026-07-28 repeats this field of a request in the header `Mcp-Name`. */
const NAME_FIELDS: Record<string, string> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
};
const CREDENTIAL_REFUSED = -32_001;
const NOT_REACHED = -32_000;

/**
 * Connects a host that speaks MCP over standard input and output with `/mcp` of the service. It has no tools of its own: each
 * message is one request.
 */
export async function mcp(context: Context): Promise<void> {
  const { stdin, stdout } = context;
  const bridge = createBridge(await openSession(context), (message) => {
    stdout.write(`${JSON.stringify(message)}\n`);
  });
  const running = new Set<Promise<void>>();
  for await (const line of createInterface({ input: stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() === '') continue;
    const work = bridge(line);
    running.add(work);
    work.finally(() => running.delete(work));
  }
  await Promise.all(running);
}

export function createBridge({ fetch, credential }: Session, write: (message: unknown) => void) {
  const calls = new Map<Id, AbortController>();
  /** Since the host has agreed on it. */
  let version: string | undefined;

  const headersOf = ({ method = '', params = {} }: Message): Record<string, string> => {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const enveloped = (params._meta as Record<string, unknown> | undefined)?.[VERSION_META];
    if (typeof enveloped !== 'string')
      return version === undefined ? headers : { ...headers, 'mcp-protocol-version': version };
    const name = params[NAME_FIELDS[method] ?? ''];
    return {
      ...headers,
      'mcp-protocol-version': enveloped,
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': toHeader(name) } : {}),
    };
  };

  function deliver(message: Message, asked: Message): void {
    if (asked.method === 'initialize' && message.id === asked.id) {
      const { protocolVersion } = (message.result ?? {}) as { protocolVersion?: string };
      version = protocolVersion ?? version;
    }
    write(message);
  }

  async function request(message: Message, signal: AbortSignal): Promise<void> {
    const response = await fetch(`${credential.baseUrl}/mcp`, {
      method: 'POST',
      headers: headersOf(message),
      body: JSON.stringify(message),
      signal,
    });
    const type = response.headers.get('content-type') ?? '';
    if (response.ok && type.startsWith('text/event-stream') && response.body) {
      for await (const data of readServerEvents(response.body)) deliver(JSON.parse(data) as Message, message);
      return;
    }
    const text = await response.text();
    if (response.ok && text === '') return;
    const answer = parse(text);
    if (answer?.jsonrpc === '2.0') return deliver(answer, message);
    throw refusalOf(response, answer as Record<string, unknown> | undefined);
  }

  /** Handles a line. Never rejects: what fails is the answer to the request. */
  return async (line: string): Promise<void> => {
    const message = parse(line);
    if (!message) return write(errorOf(null, -32_700, 'This line is no JSON.'));
    const { id, method, params } = message;
    if (method === 'notifications/cancelled') {
      calls.get(params?.requestId as Id)?.abort();
      return;
    }
    const controller = new AbortController();
    if (isId(id)) calls.set(id, controller);
    try {
      await request(message, controller.signal);
    } catch (error) {
      // A call that was canceled has no answer.
      if (controller.signal.aborted || !isId(id)) return;
      const { message: text, code, fix, requestId, exitCode } = classify(error);
      const number = exitCode === EXIT.credential ? CREDENTIAL_REFUSED : NOT_REACHED;
      write(errorOf(id, number, [text, fix].filter(Boolean).join(' '), { code, fix, request_id: requestId }));
    } finally {
      if (isId(id)) calls.delete(id);
    }
  };
}

const isId = (id: unknown): id is Id => typeof id === 'string' || typeof id === 'number';

const errorOf = (id: Id | null, code: number, message: string, data?: object) => ({
  jsonrpc: '2.0',
  id,
  error: { code, message, ...(data ? { data } : {}) },
});

function parse(text: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Message) : undefined;
  } catch {
    return undefined;
  }
}

function refusalOf({ status }: Response, problem: Record<string, unknown> = {}): CliError {
  const text = (name: string) => (typeof problem[name] === 'string' ? problem[name] : undefined);
  return new CliError(text('detail') ?? `The service answered ${status}.`, {
    exitCode: status === 401 || status === 403 ? EXIT.credential : EXIT.api,
    code: text('code') ?? 'no_answer_of_the_service',
    fix: text('fix'),
    requestId: text('request_id'),
  });
}

/** Characters that a header cannot have are sent in base64, as the revision says. */
function toHeader(value: string): string {
  const isPlain =
    /^[\x20-\x7e\t]+$/.test(value) && value === value.trim() && !/^=\?base64\?.*\?=$/.test(value);
  return isPlain ? value : `=?base64?${Buffer.from(value).toString('base64')}?=`;
}
