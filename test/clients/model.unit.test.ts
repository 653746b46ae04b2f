import { describe, expect, test } from '@jest/globals';
import { printClients } from '../../clients/generate/files.ts';
import { createModel, type Method, type OpenApiDocument, readModel } from '../../clients/generate/model.ts';

const model = await readModel();
const methods = new Map(
  model.groups.flatMap(({ methods }) => methods).map((method) => [method.operationId, method]),
);
const method = (operationId: string): Method => {
  const found = methods.get(operationId);
  if (!found) throw new Error(`The model has no ${operationId}`);
  return found;
};
const reference = (name: string) => ({ kind: 'reference', name });

describe('the model of the API', () => {
  test('leaves out aliases, operations of staff, and those that no API key may call', () => {
    expect(methods.size).toBeGreaterThan(130);
    expect(model.leftOut).toMatchObject({
      'retentionUnversioned.get': 'alias',
      'adminKeys.revoke': 'staff',
      'auth.signIn': 'no API key may call it',
      'health.live': 'no API key may call it',
    });
    expect([...methods.keys()].filter((operationId) => operationId in model.leftOut)).toEqual([]);
    expect(
      [...methods.keys()].filter((operationId) => /^(admin|auth|mfa|oauth|user)[A-Z.]/.test(operationId)),
    ).toEqual([]);
  });

  test('a send answers a message or a draft, and receipts to a key that may not read', () => {
    expect(method('messages.send')).toMatchObject({
      verb: 'POST',
      path: '/api/v1/inboxes/{inbox_id}/messages',
      pathParameters: [{ name: 'inbox_id', wireName: 'inboxId', required: true }],
      queryParameters: [{ name: 'view', required: false, limits: 'default "full"' }],
      headerParameters: [],
      body: { kind: 'json', type: 'SendMessage', required: true },
      idempotent: true,
      permission: 'messages:send',
      answer: {
        kind: 'json',
        full: {
          kind: 'union',
          branches: [reference('Message'), reference('Draft')],
          discriminator: 'object',
        },
        agent: { branches: [reference('AgentMessage'), reference('Draft')] },
        receipt: { branches: [reference('MinimalMessage'), reference('MinimalDraft')] },
        mayBeEmpty: false,
      },
    });
  });

  test('a list is a page of its items', () => {
    const { answer, queryParameters, idempotent } = method('messages.list');
    expect(answer).toEqual({
      kind: 'page',
      item: reference('MessageListItem'),
      agentItem: reference('AgentMessage'),
    });
    expect(queryParameters.map(({ name }) => name)).toEqual(expect.arrayContaining(['limit', 'cursor', 'q']));
    expect(idempotent).toBe(false);
  });

  test('an id in the path has the name of its resource', () => {
    expect(method('webhookDeliveries.get').path).toBe('/api/v1/webhooks/deliveries/{delivery_id}');
    expect(method('messages.removeLabel').pathParameters.map(({ name }) => name)).toEqual([
      'message_id',
      'label',
    ]);
    expect(method('inboxes.get').path).toBe('/api/v1/inboxes/{inbox_id}');
    const unclear = [...methods.values()].filter(({ pathParameters }) =>
      pathParameters.some(({ name }) => name === 'id'),
    );
    expect(unclear).toEqual([]);
  });

  test('knows files, streams, texts, headers, and answers without content', () => {
    expect(method('attachments.upload').body).toEqual({ kind: 'file' });
    expect(method('events.stream')).toMatchObject({
      answer: { kind: 'events' },
      headerParameters: [{ name: 'last_event_id', wireName: 'last-event-id' }],
    });
    expect(method('domains.zoneFile').answer).toEqual({ kind: 'text' });
    expect(method('drafts.update').headerParameters).toMatchObject([{ wireName: 'if-match' }]);
    expect(method('messages.delete').answer).toEqual({ kind: 'none' });
    expect(method('messages.dismissInjection').answer).toMatchObject({ mayBeEmpty: true });
  });

  test('every named type exists once, and values of answers are open', () => {
    const names = model.types.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    const referred = [...JSON.stringify(model).matchAll(/"kind":"reference","name":"([^"]+)"/g)].map(
      ([, name = '']) => name,
    );
    expect(referred.filter((name) => !names.includes(name))).toEqual([]);
    expect(model.types.find(({ name }) => name === 'AnyMessageStatus')).toMatchObject({
      type: { kind: 'enumeration', open: true, values: expect.arrayContaining(['delivered']) },
    });
    expect(model.types.find(({ name }) => name === 'Event')).toMatchObject({
      type: { discriminator: 'type' },
    });
    expect(model.errorCodes).toContain('rate_limited');
  });

  test('a field that may be null keeps its description, and a group has none of others', () => {
    const { body } = method('messages.send');
    const fields = body.kind === 'json' ? body.fields : [];
    expect(fields.find(({ name }) => name === 'cc')).toMatchObject({
      description: 'Copies.',
      limits: 'at most 50 items',
    });
    const described = new Map(model.groups.map(({ name, description }) => [name, description]));
    expect(described.get('inboxes')).toBe('Addresses that send and receive.');
    expect(described.get('messages')).toMatch(/^Send, reply/);
    expect(['members', 'refusals', 'me', 'apiKeys'].map((name) => described.get(name))).toEqual(
      Array(4).fill(''),
    );
  });

  test('descriptions name methods, as each language calls them', () => {
    const files = printClients(model);
    const typescript = files['clients/typescript/src/generated/resources.ts'] ?? '';
    const python = files['clients/python/src/agent_email/_resources.py'] ?? '';
    expect(typescript).toContain('`messages.wait` with `since`');
    expect(python).toContain('`messages.dismiss_injection`');
    for (const text of [typescript, python])
      expect(text).not.toMatch(/(?:GET|POST) \/api\/v1\/(?:inboxes|messages)/);
  });
});

describe('what the model cannot express', () => {
  const base: OpenApiDocument = {
    tags: [{ name: 'Things', description: 'Things.' }],
    paths: {},
    components: {
      schemas: {
        Event: { type: 'object', properties: { id: { type: 'string' } } },
        Problem: { type: 'object', properties: { code: { type: 'string', 'x-known-values': ['a'] } } },
        Thing: { type: 'object', properties: { id: { type: 'string' } } },
        ThingList: { type: 'object', properties: { has_more: { type: 'boolean' } } },
        Odd: { type: 'object', properties: { id: { type: 'string', format: 'ipv4' } } },
        Unknown: { type: 'object', properties: { id: { not: {} } as object } },
      },
      parameters: {},
    },
  };
  const answering = (name: string) => ({
    '200': { content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } } },
  });
  const operation = (changes: object) => ({
    ...base,
    paths: {
      '/things/{id}': {
        get: {
          operationId: 'things.get',
          summary: 'A thing',
          tags: ['Things'],
          parameters: [{ name: 'id', in: 'path' as const, required: true, schema: { type: 'string' } }],
          responses: answering('Thing'),
          ...changes,
        },
      },
    },
  });

  test('an operation that fits is taken', () => {
    expect(createModel(operation({})).groups).toMatchObject([{ name: 'things', methods: [{ name: 'get' }] }]);
  });

  test.each([
    ['an operationId without a group', { operationId: 'get' }, 'get is not group.method'],
    [
      'a media type',
      { responses: { '200': { content: { 'image/png': { schema: {} } } } } },
      'things.get answers image/png',
    ],
    [
      'an answer without a name',
      { responses: { '200': { content: { 'application/json': { schema: {} } } } } },
      'without a name',
    ],
    ['a list without a cursor', { responses: answering('ThingList') }, 'things.get is half a list'],
    ['a format', { responses: answering('Odd') }, 'does not know the format ipv4'],
    ['a keyword', { responses: answering('Unknown') }, 'does not know the keyword not'],
    [
      'a body in another format',
      { requestBody: { content: { 'text/csv': { schema: {} } } } },
      'takes a body of text/csv',
    ],
    [
      'a parameter twice',
      {
        parameters: [
          { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
          { name: 'thing_id', in: 'query', schema: { type: 'string' } },
        ],
      },
      'two parameters thing_id',
    ],
    ['a path parameter without a description', { parameters: [] }, 'does not describe {id}'],
  ])('%s fails', (_, changes, message) => {
    expect(() => createModel(operation(changes))).toThrow(message);
  });
});
