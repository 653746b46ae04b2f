import { globSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { AttachmentRecord, AttachmentTextRecord } from '../../api/attachments/attachments.schemas.ts';
import { FENCED_FIELDS, SHAPED_FIELDS } from '../../api/mcp/fences.ts';
import { TOOLS } from '../../api/mcp/tools/index.ts';
import { CredentialRecord } from '../../api/me/me.schemas.ts';
import { AgentMessage } from '../../api/messages/agent-message.schemas.ts';
import { MessageRecord } from '../../api/messages/messages.schemas.ts';
import { ThreadRecord, ThreadSummary } from '../../api/messages/threads.schemas.ts';
import { KEY_PERMISSIONS } from '../../domain/identity/permissions.ts';
import { connectTools } from '../support/mcp-client.ts';
import { createOrganization, type TestOrganization } from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';
import { parseImports } from './import-graph.ts';

const app = useTestApp();
let organization: TestOrganization;
beforeAll(async () => {
  organization = await createOrganization(app.worker, { permissions: [...KEY_PERMISSIONS] });
});

/** A model reads the list with each conversation. */
const MAX_LIST_TOKENS = 6_000;
const BYTES_PER_TOKEN = 4;

/** The JSON types that a schema allows. */
function typesOf(schema: unknown): string[] {
  const { type, anyOf = [], $ref, const: value } = schema as Record<string, never>;
  if (value !== undefined) return [typeof value];
  if ($ref) return ['object'];
  return [...new Set([...[type ?? []].flat(), ...(anyOf as unknown[]).flatMap(typesOf)])].sort();
}

describe('the tools', () => {
  test('are operations of the API: they run no statement, build no service and check no permission', () => {
    const files = globSync('api/mcp/**/*.ts');
    expect(files.length).toBeGreaterThan(8);
    const allowed = /^(?:api\/|@modelcontextprotocol\/server$|typebox$|ajv$|node:crypto$)/;
    const shared = ['platform/errors.ts', 'platform/config.ts', 'platform/crypto.ts'];
    const foreign = files
      .flatMap((file) => parseImports(file))
      .filter(({ target, typeOnly }) => !typeOnly && !allowed.test(target) && !shared.includes(target));
    // Types of the domain and of Fastify cost nothing.
    expect(foreign.map(({ file, target }) => `${file} → ${target}`)).toEqual([]);
    for (const file of files)
      expect({
        file,
        names: /requirePermission|permissions\.has|\.db\b/.test(readFileSync(file, 'utf8')),
      }).toEqual({
        file,
        names: file === 'api/mcp/operations.ts',
      });
  });

  test('name operations that exist, and each tool another one than the others', () => {
    const ids = new Set(app.contract.operations.map(({ operationId }) => operationId));
    for (const { name, operations } of TOOLS)
      expect({ name, unknown: operations.filter((id) => !ids.has(id)) }).toEqual({ name, unknown: [] });
    expect(new Set(TOOLS.map(({ name }) => name)).size).toBe(TOOLS.length);
  });

  test('stand in docs/mcp.md, all of them and no others', () => {
    const table = readFileSync('docs/mcp.md', 'utf8').split('## Tools')[1]?.split('\n\n')[1] ?? '';
    const documented = table
      .split('\n')
      .slice(2)
      .flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name = '']) => name));
    expect(documented.sort()).toEqual(TOOLS.map(({ name }) => name).sort());
  });

  test('approve nothing, and change nothing that only people may change', () => {
    const forbidden = /approv|reject|dismiss|apiKeys|webhook|polic|member|domains|exports/i;
    expect(TOOLS.flatMap(({ operations }) => operations).filter((id) => forbidden.test(id))).toEqual([]);
  });

  test('say whether they change something, as the methods of their operations do', () => {
    for (const { name, operations, annotations } of TOOLS) {
      const methods = operations.map(
        (id) => app.contract.operations.find(({ operationId }) => operationId === id)?.method,
      );
      expect({ name, reads: annotations.readOnlyHint }).toEqual({
        name,
        reads: methods.every((method) => method === 'GET'),
      });
    }
  });

  test(`cost at most ${MAX_LIST_TOKENS} tokens`, async () => {
    const tools = await connectTools(app, organization.token);
    const list = await tools.client.listTools();
    expect(list.tools).toHaveLength(TOOLS.length);
    const tokens = JSON.stringify(list.tools).length / BYTES_PER_TOKEN;
    expect(tokens).toBeLessThan(MAX_LIST_TOKENS);
    await tools.close();
  });

  test('type the fields of their answers as the API does', () => {
    const typed: [string, object][] = [
      ['whoami', CredentialRecord.properties],
      ['get_message', AgentMessage.properties],
      ['wait_for_message', AgentMessage.properties],
      ['wait_for_code', AgentMessage.properties],
      ['get_thread', ThreadRecord.properties],
      ['get_attachment', { ...AttachmentRecord.properties, ...AttachmentTextRecord.properties }],
    ];
    for (const [name, properties] of typed) {
      const output = TOOLS.find((tool) => tool.name === name)?.output ?? {};
      const fields = Object.entries(properties).map(([field, schema]) => [field, typesOf(schema)]);
      const declared = Object.keys(properties).map((field) => [
        field,
        [output[field]?.type ?? []].flat().sort(),
      ]);
      expect({ name, fields: Object.fromEntries(declared) }).toEqual({
        name,
        fields: Object.fromEntries(fields),
      });
    }
  });

  test('have schemas that every validator understands', async () => {
    const tools = await connectTools(app, organization.token);
    const ajv = new Ajv({ strict: true });
    for (const { name, inputSchema, outputSchema } of (await tools.client.listTools()).tools) {
      expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
      ajv.compile(inputSchema);
      ajv.compile(outputSchema ?? {});
      expect({ name, closed: inputSchema.additionalProperties }).toEqual({ name, closed: false });
    }
    await tools.close();
  });
});

/** Text of messages that stands bare: ids, codes, and words that the service chooses. */
const BARE_FIELDS = [
  'attachment_id',
  'authentication',
  'confidence',
  'date',
  'direction',
  'dismissed_at',
  'dismissed_by',
  'disposition',
  'dkim',
  'dmarc',
  'download_url',
  'expires_at',
  'format',
  'id',
  'inbox_id',
  'kind',
  'labels',
  'last_inbound_at',
  'last_message_at',
  'last_message_id',
  'last_outbound_at',
  'level',
  'next',
  'object',
  'raw',
  'rule',
  'sha256',
  'signals',
  'spf',
  'status',
  'thread_id',
  'type',
  'updated_at',
  'value',
];

test('every text of a message, thread or attachment is fenced or known to need no fence', () => {
  const names = new Set<string>();
  const collect = (schema: unknown, name: string): void => {
    if (typeof schema !== 'object' || schema === null) return;
    const { type, properties = {}, items, anyOf = [], $ref, enum: values } = schema as Record<string, never>;
    const referred = $ref
      ? app.contract.description.components.schemas[String($ref).replace(/#$/, '')]
      : undefined;
    if (referred) collect(referred, name);
    if ([type].flat().includes('string' as never) || values) names.add(name);
    for (const [member, part] of Object.entries(properties)) collect(part, member);
    for (const part of [items, ...(anyOf as unknown[])]) collect(part, name);
  };
  const shown = [
    AgentMessage,
    ThreadSummary,
    AttachmentRecord,
    AttachmentTextRecord,
    MessageRecord.properties.recipients,
  ];
  for (const schema of shown) collect(schema, 'answer');
  expect(names.size).toBeGreaterThan(30);
  const unknown = [...names].filter(
    (name) => !FENCED_FIELDS.has(name) && !(name in SHAPED_FIELDS) && !BARE_FIELDS.includes(name),
  );
  expect(unknown).toEqual([]);
});
