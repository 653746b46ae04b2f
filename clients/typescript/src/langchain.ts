import { type DynamicStructuredTool, tool } from '@langchain/core/tools';
import type { AgentEmail } from './client.ts';
import type { ToolOptions } from './tools.ts';

/** The tools of the service for LangChain: `createAgent({ tools: await tools(client), … })`. */
export async function tools(
  client: AgentEmail<boolean>,
  options?: ToolOptions,
): Promise<DynamicStructuredTool[]> {
  const listed = await client.tools(options);
  return listed.map(({ name, description, inputSchema, call }) =>
    tool(
      async (input: unknown, { signal }: { signal?: AbortSignal } = {}) =>
        JSON.stringify(await call(input, signal ? { signal } : {})),
      { name, description, schema: inputSchema as object },
    ),
  ) as unknown as DynamicStructuredTool[];
}
