import { expect, test } from '@jest/globals';
import type { Operation } from '../support/contract.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();

interface Schema {
  $ref?: string;
  type?: string | string[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
}

function resolve(schema: Schema): Schema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : resolve(app.contract.description.components.schemas[name] as Schema);
}

function isNullable(given: Schema): boolean {
  const schema = resolve(given);
  return [schema.type].flat().includes('null') || (schema.anyOf ?? []).some(isNullable);
}

/** The optional fields of a request that a response also has, by whether the response may hold null. */
function* compareFields(
  request: Schema,
  response: Schema,
  path = '',
): Generator<{ path: string; accepts: boolean }> {
  const [asked, answered] = [resolve(request), resolve(response)];
  for (const branch of asked.anyOf ?? []) yield* compareFields(branch, answered, path);
  for (const branch of answered.anyOf ?? answered.oneOf ?? []) yield* compareFields(asked, branch, path);
  for (const [name, field] of Object.entries(asked.properties ?? {})) {
    const shown = answered.properties?.[name];
    if (!shown) continue;
    if (isNullable(shown) && !asked.required?.includes(name))
      yield { path: `${path}${name}`, accepts: isNullable(field) };
    yield* compareFields(field, shown, `${path}${name}.`);
  }
  if (asked.items && answered.items) yield* compareFields(asked.items, answered.items, `${path}[].`);
}

function* fieldsOf({ operationId, requestBody, responses }: Operation) {
  const body = requestBody?.content['application/json']?.schema;
  for (const [status, { content }] of Object.entries(responses)) {
    const schema = content?.['application/json']?.schema;
    if (!body || !schema || !status.startsWith('2')) continue;
    for (const { path, accepts } of compareFields(body, schema))
      yield { name: `${operationId} ${path}`, accepts };
  }
}

test('every optional request field accepts null if a response may hold null for it', () => {
  const fields = app.contract.operations.flatMap((operation) => [...fieldsOf(operation)]);
  const names = new Set(fields.map(({ name }) => name));
  for (const name of [
    'inboxes.create client_id',
    'drafts.update subject',
    'messages.send attachments.[].content_id',
  ])
    expect(names).toContain(name);
  expect(fields.filter(({ accepts }) => !accepts).map(({ name }) => name)).toEqual([]);
});
