import { describe, expect, test } from '@jest/globals';
import Fastify from 'fastify';
import { Type } from 'typebox';
import { installSerialization } from '../../api/plugins/serialization.ts';
import { resource, strictObject, text } from '../../api/schemas.ts';
import { sharedSchemas } from '../../api/shared-schemas.ts';
import type { Operation } from '../support/contract.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();

type Schema = Record<string, unknown>;

const schemaOf = (reference: string) =>
  app.contract.description.components.schemas[reference.split('/').at(-1) ?? ''];

/** Every schema within a value and what it refers to, each named schema once, with its path. */
function* walk(value: unknown, path: string, seen: Set<unknown>): Generator<[path: string, schema: Schema]> {
  if (typeof value !== 'object' || value === null || seen.has(value)) return;
  seen.add(value);
  const schema = value as Schema;
  if (typeof schema.$ref === 'string' && schema.$ref.includes('/schemas/'))
    yield* walk(schemaOf(schema.$ref), schema.$ref.split('/').at(-1) ?? '', seen);
  yield [path, schema];
  for (const [name, member] of Object.entries(schema))
    if (!['examples', 'required', 'enum', 'default'].includes(name))
      yield* walk(member, Array.isArray(value) ? path : `${path}/${name}`, seen);
}

function collect(read: (operation: Operation) => unknown): [path: string, schema: Schema][] {
  const seen = new Set<unknown>();
  return app.contract.operations.flatMap((operation) => [
    ...walk(read(operation), operation.operationId, seen),
  ]);
}
const answers = () => [
  ...collect(({ responses }) => responses),
  ...walk(app.contract.description.webhooks, 'webhooks', new Set()),
];
const requests = () => collect(({ parameters, requestBody }) => [parameters, requestBody]);
const isKind = (path: string) => /\/object$|Event\/properties\/type$/.test(path);

describe('the OpenAPI document, for the client of an earlier version', () => {
  test('leaves objects in answers and events open, and closes those of requests', () => {
    const objects = answers().filter(([, { properties }]) => properties);
    expect(objects.length).toBeGreaterThan(200);
    expect(objects.filter(([, { additionalProperties }]) => additionalProperties === false)).toEqual([]);
    const asked = requests().filter(([, { properties, type }]) => properties && type === 'object');
    expect(asked.length).toBeGreaterThan(80);
    expect(asked.filter(([, { additionalProperties }]) => additionalProperties !== false)).toEqual([]);
  });

  test('has strings with known values in answers, and enumerations in requests', () => {
    const closed = answers().filter(
      ([path, { enum: values, const: value }]) => values || (typeof value === 'string' && !isKind(path)),
    );
    expect(closed).toEqual([]);
    expect(answers().filter(([, schema]) => schema['x-known-values']).length).toBeGreaterThan(80);
    expect(requests().filter(([, schema]) => schema['x-known-values'])).toEqual([]);
    expect(requests().filter(([, schema]) => schema.enum).length).toBeGreaterThan(30);
  });

  test('says null beside a named enumeration, never within one', () => {
    const all = [...answers(), ...requests()];
    const mixed = all.filter(
      ([, schema]) =>
        schema.enum && ([schema.type].flat().includes('null') || (schema.enum as unknown[]).includes(null)),
    );
    expect(mixed).toEqual([]);
    const nullable = all.flatMap(([path, { anyOf }]) =>
      Array.isArray(anyOf) && anyOf.some(({ type }) => type === 'null')
        ? anyOf.map((branch: Schema) => ({ path, branch }))
        : [],
    );
    expect(nullable.filter(({ branch }) => /\/Any/.test(String(branch.$ref))).length).toBeGreaterThan(5);
    expect(nullable.filter(({ branch }) => branch.enum || branch['x-known-values'])).toEqual([]);
  });
});

test('the OpenAPI document requires recipients of a send, if only an empty list, and the text of a reply, if only null', () => {
  const { required, properties } = schemaOf('SendMessage') as { required: string[]; properties: Schema };
  expect(required).toEqual(['to']);
  expect(properties.to).toMatchObject({ type: 'array' });
  expect(schemaOf('ReplyToMessage')).toMatchObject({ required: ['text_body'] });
});

describe('the names of the OpenAPI document', () => {
  test('have no number at their end, and no two components share one', () => {
    const { schemas, parameters, responses } = app.contract.description.components;
    const names = [schemas, parameters, responses].flatMap((components) => Object.keys(components));
    expect(names.length).toBeGreaterThan(300);
    expect(names.filter((name) => !/^[A-Z][A-Za-z]*$/.test(name))).toEqual([]);
    const distinct = new Set(names.map((name) => name.toLowerCase()));
    expect(names.length - distinct.size).toBe(0);
  });
});

describe('the schemas that routes serialize by', () => {
  test('leave out a field that they do not name, also within a part', async () => {
    const server = Fastify();
    installSerialization(server, []);
    const schema = resource('thing', { id: text(10), parts: Type.Array(strictObject({ name: text(10) })) });
    const found = { object: 'thing', id: '1', secret: 'x', parts: [{ name: 'a', secret: 'y' }] };
    server.get('/', { schema: { response: { 200: schema } } }, async () => found);
    expect((await server.inject('/')).json()).toEqual({ object: 'thing', id: '1', parts: [{ name: 'a' }] });
  });

  /** Objects whose fields are not known beforehand, with their reason. */
  const OPEN: Record<string, string> = {
    Problem: 'further fields of an error, which the service itself adds',
    ItemProblem: 'as Problem',
    'Event/properties/data': 'depends on the type; a schema of its own for each',
    'UsageEvent/properties/data': 'depends on the type',
    'StaffJob/properties/query/anyOf': 'the filter of the request',
    'AuditEntry/properties/details': 'depends on the action',
    'StaffAuditEntry/properties/details': 'depends on the action',
  };

  test('are closed: a field that the presenter did not mean to show is left out', () => {
    const seen = new Set<unknown>();
    const open = sharedSchemas
      .flatMap((schema) => [...walk(schema, (schema as { $id?: string }).$id ?? '', seen)])
      .filter(([, { properties, additionalProperties, type }]) =>
        properties || type === 'object'
          ? additionalProperties === true || additionalProperties === undefined
          : false,
      );
    expect(open.map(([path]) => path).sort()).toEqual(Object.keys(OPEN).sort());
  });
});
