import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { TestApp } from './test-app.ts';

/** The revisions that hosts speak: the present one, and those of 2025. */
export const REVISIONS = ['2026-07-28', '2025'] as const;
export type Revision = (typeof REVISIONS)[number];

export interface ToolResult {
  isError: boolean;
  /** The structured answer. */
  answer: Record<string, unknown>;
  /** The same, as hosts without structured answers show it to the model. */
  text: string;
}

export interface ToolClient {
  readonly client: Client;
  call(name: string, args?: Record<string, unknown>): Promise<ToolResult>;
  names(): Promise<string[]>;
  close(): Promise<void>;
}

/** The URL of the tools of a test app, which listens from now on. */
export async function toolsUrl({ app }: Pick<TestApp, 'app'>): Promise<URL> {
  if (!app.server.listening) await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The app does not listen');
  return new URL(`http://127.0.0.1:${address.port}/mcp`);
}

/** Connects the official client over HTTP. */
export async function connectTools(
  app: Pick<TestApp, 'app'>,
  token: string,
  { revision = '2026-07-28' }: { revision?: Revision } = {},
): Promise<ToolClient> {
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: revision === '2025' ? 'legacy' : { pin: revision } } },
  );
  const transport = new StreamableHTTPClientTransport(await toolsUrl(app), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  await client.connect(transport);
  return {
    client,
    async call(name, args = {}) {
      const result = await client.callTool({ name, arguments: args });
      const [content] = result.content as { text: string }[];
      return {
        isError: result.isError === true,
        answer: (result.structuredContent ?? {}) as Record<string, unknown>,
        text: content?.text ?? '',
      };
    },
    names: async () => (await client.listTools()).tools.map(({ name }) => name),
    close: () => client.close(),
  };
}

const MARKS = /<untrusted ([0-9a-f]{8})>([\s\S]*?)<\/untrusted \1>/g;

/** An answer as it was before the text of strangers was fenced. */
export function unfence<Value>(value: Value): Value {
  if (typeof value === 'string') return value.replace(MARKS, '$2') as Value;
  if (Array.isArray(value)) return value.map(unfence) as Value;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, unfence(member)])) as Value;
}
