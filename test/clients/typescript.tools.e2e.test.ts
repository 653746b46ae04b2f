import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { tools as aiSdkTools } from '../../clients/typescript/src/ai-sdk.ts';
import { AgentEmail, AgentEmailError } from '../../clients/typescript/src/index.ts';
import { tools as langchainTools } from '../../clients/typescript/src/langchain.ts';
import { tools as openAiTools } from '../../clients/typescript/src/openai-agents.ts';
import type { Database } from '../../platform/database/database.ts';
import { createKey, createOrganization } from '../support/organizations.ts';
import { sharedService } from '../support/service.ts';
import { connect } from '../support/test-app.ts';

jest.setTimeout(60_000);
const service = sharedService();
let database: Database;
let client: AgentEmail;
let inboxId: string;

beforeAll(async () => {
  database = connect(service.database_url);
  const { token } = await createOrganization(database);
  client = new AgentEmail({ apiKey: token, baseUrl: service.base_url });
  inboxId = (await client.inboxes.create()).id;
});
afterAll(() => database.close());

const letter = (subject: string) => ({
  inbox_id: inboxId,
  to: ['ada@people.example'],
  subject,
  text_body: 'Hello',
});

async function subjects(): Promise<string[]> {
  return (await client.messages.list(inboxId)).data.map(({ subject }) => subject);
}

test('the tools are those of the service, with their schemas, and a refusal is an answer', async () => {
  const tools = await client.tools();
  expect(tools.length).toBeGreaterThan(20);
  const send = tools.find(({ name }) => name === 'send_message');
  expect(send).toMatchObject({
    isReadOnly: false,
    description: expect.stringMatching(/\w{3}/),
    inputSchema: { type: 'object', required: expect.arrayContaining(['to']) },
  });
  expect(await send?.call(letter('By itself'))).toMatchObject({
    object: 'message',
    status: expect.any(String),
  });
  expect(await send?.call({})).toMatchObject({
    object: 'error',
    code: 'validation_error',
    fix: expect.any(String),
  });
  const wait = tools.find(({ name }) => name === 'wait_for_message');
  expect(await wait?.call({ inbox_id: inboxId, timeout_seconds: 1 })).toMatchObject({ timed_out: true });
});

test('a key has the tools that it permits', async () => {
  const { organizationId } = await createOrganization(database);
  const { token } = await createKey(database, { organizationId, permissions: ['messages:read'] });
  const reader = new AgentEmail({ apiKey: token, baseUrl: service.base_url });
  const names = (await reader.tools()).map(({ name }) => name);
  expect(names).toContain('list_messages');
  expect(names).not.toContain('send_message');
  await expect(reader.tools({ names: ['send_message'] })).rejects.toThrow(AgentEmailError);
});

test('for the AI SDK', async () => {
  const tools = await aiSdkTools(client, { names: ['send_message', 'whoami'] });
  expect(Object.keys(tools).sort()).toEqual(['send_message', 'whoami']);
  const { execute, inputSchema } = tools.send_message ?? {};
  const context = { toolCallId: 'call_1', messages: [], context: undefined as never };
  expect(await execute?.(letter('AI SDK'), context)).toMatchObject({ object: 'message' });
  expect(inputSchema).toMatchObject({
    jsonSchema: { type: 'object', required: expect.arrayContaining(['to']) },
  });
  expect(await subjects()).toContain('AI SDK');
});

test('for OpenAI Agents', async () => {
  const [tool, ...others] = await openAiTools(client, { names: ['send_message'] });
  expect(others).toEqual([]);
  if (tool?.type !== 'function') throw new Error('It is no function');
  expect(tool).toMatchObject({
    name: 'send_message',
    strict: false,
    parameters: { required: expect.arrayContaining(['to']) },
  });
  const answer = await tool.invoke({} as never, JSON.stringify(letter('OpenAI')));
  expect(JSON.parse(String(answer))).toMatchObject({ object: 'message' });
  expect(await subjects()).toContain('OpenAI');
});

test('for LangChain', async () => {
  const [tool] = await langchainTools(client, { names: ['send_message'] });
  const answer = await tool?.invoke(letter('LangChain'));
  expect(JSON.parse(String(answer))).toMatchObject({ object: 'message' });
  expect(tool?.schema).toMatchObject({ required: expect.arrayContaining(['to']) });
  expect(await subjects()).toContain('LangChain');
});
