import { dynamicTool, jsonSchema, type ToolSet } from 'ai';
import type { AgentEmail } from './client.ts';
import type { ToolOptions } from './tools.ts';

/** The tools of the service for the AI SDK: `generateText({ tools: await tools(client), … })`. */
export async function tools(client: AgentEmail<boolean>, options?: ToolOptions): Promise<ToolSet> {
  const listed = await client.tools(options);
  return Object.fromEntries(
    listed.map(({ name, description, inputSchema, call }) => [
      name,
      dynamicTool({
        description,
        inputSchema: jsonSchema(inputSchema as Parameters<typeof jsonSchema>[0]),
        execute: (input, { abortSignal }) => call(input, abortSignal ? { signal: abortSignal } : {}),
      }),
    ]),
  );
}
