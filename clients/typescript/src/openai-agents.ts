import { type Tool, tool } from '@openai/agents';
import type { AgentEmail } from './client.ts';
import type { ToolOptions } from './tools.ts';

/** The tools of the service for the OpenAI Agents SDK: `new Agent({ tools: await tools(client), … })`. */
export async function tools(client: AgentEmail<boolean>, options?: ToolOptions): Promise<Tool[]> {
  const listed = await client.tools(options);
  return listed.map(
    ({ name, description, inputSchema: { type, properties, required = [] }, call }): Tool =>
      tool({
        name,
        description,
        // Strict schemas would require every field.
        strict: false,
        parameters: {
          type,
          // biome-ignore lint/suspicious/noExplicitAny: the SDK does not export its type of JSON Schemas
          properties: properties as Record<string, any>,
          required,
          additionalProperties: true,
        },
        execute: async (input) => JSON.stringify(await call(input)),
      }),
  );
}
