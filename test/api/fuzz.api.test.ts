import { beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Operation } from '../support/contract.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp({ config: { STREAMS_PER_CREDENTIAL: '0' } });
let organization: TestOrganization;
let ids: string[];
beforeAll(async () => {
  // `STREAMS_PER_CREDENTIAL: '0'` rejects streams and waiting calls, because nothing here would end them.
  organization = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, organization);
  const create = async (path: string, body: unknown) =>
    (await app.call(path, { method: 'POST', token: organization.token, body })).json<{ id: string }>().id;
  ids = [
    inbox.id,
    await create(`/inboxes/${inbox.id}/drafts`, {}),
    await create(`/inboxes/${inbox.id}/messages`, { to: [{ email: 'a@example.test' }] }),
    await create('/webhooks/endpoints', { url: 'https://receiver.example.test', events: ['message.sent'] }),
  ];
});

type Schema = Record<string, unknown>;

/** Ordinary, unusual and malicious text. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(
    '',
    '\u0000',
    '\ud800',
    'a\r\nBcc: b@example.test',
    'a@example.test',
    '"a b"@example.test',
    '%',
    "'; drop table inboxes; --",
    '2026-02-30T00:00:00Z',
    '0000-01-01T00:00:00Z',
    '9999-12-31T23:59:60Z',
    '+275760-09-13T00:00:00.001Z',
    '2026-01-01T00:00:00Z',
    'https://example.test/',
    'https://[::1]:99999/',
    'msg_01jz0000000000000000000000',
    '__proto__',
    'X-A',
    'From',
  ),
  fc.integer({ min: 1, max: 3000 }).map((length) => 'é'.repeat(length)),
);
const anything = fc.jsonValue({ maxDepth: 4 });

/** Values that mostly match a schema, to pass validation, and sometimes violate it. */
function arbitraryNear(schema: unknown): fc.Arbitrary<unknown> {
  const resolved = resolve(schema);
  const { enum: choices, properties, items, anyOf } = resolved;
  const types = [resolved.type].flat();
  const candidates: fc.Arbitrary<unknown>[] = [];
  if (Array.isArray(choices)) candidates.push(fc.constantFrom(...choices));
  if (Array.isArray(anyOf)) candidates.push(...anyOf.map(arbitraryNear));
  if (types.includes('string') && !choices) candidates.push(text);
  if (types.includes('integer') || types.includes('number')) candidates.push(fc.integer(), fc.double());
  if (types.includes('boolean')) candidates.push(fc.boolean());
  if (types.includes('null')) candidates.push(fc.constant(null));
  if (types.includes('array')) candidates.push(fc.array(arbitraryNear(items), { maxLength: 4 }));
  if (types.includes('object')) candidates.push(arbitraryObject(properties as Schema | undefined));
  return fc.oneof(
    { weight: 12, arbitrary: fc.oneof(...(candidates.length ? candidates : [anything])) },
    { weight: 1, arbitrary: anything },
  );
}

function arbitraryObject(properties: Schema | undefined): fc.Arbitrary<unknown> {
  if (!properties) return fc.dictionary(text, text, { maxKeys: 4 });
  const members = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, arbitraryNear(schema)]),
  );
  return fc.record(members, { requiredKeys: [] });
}

function resolve(schema: unknown): Schema {
  const { $ref } = (schema ?? {}) as { $ref?: string };
  if (!$ref) return (schema ?? {}) as Schema;
  return app.contract.description.components.schemas[$ref.split('/').at(-1) ?? ''] as Schema;
}

const bodySchema = ({ requestBody }: Operation) => requestBody?.content['application/json']?.schema;

/** Fails on a server error. `call` also fails on an undocumented response. */
async function attempt(operation: Operation, id: string, query: string, call: Call): Promise<void> {
  const path = operation.path.replace('/api/v1', '').replace(/\{\w+\}/g, encodeURIComponent(id)) + query;
  const method = operation.method as NonNullable<Call['method']>;
  const response = await app.call(path, { ...call, method, token: organization.token });
  // `expect` would take a second of these thousands of calls.
  if (response.statusCode >= 500) throw new Error(`${operation.operationId} returned ${response.statusCode}`);
}

test('no body causes a server error', async () => {
  const operations = app.contract.operations.filter(bodySchema);
  expect(operations.length).toBeGreaterThan(8);
  for (const operation of operations) {
    await fc.assert(
      fc.asyncProperty(arbitraryNear(bodySchema(operation)), fc.constantFrom(...ids), (body, id) =>
        attempt(operation, id, '', { body }),
      ),
      { numRuns: 60 },
    );
  }
}, 120_000);

test('no query causes a server error', async () => {
  const operations = app.contract.operations.filter(
    ({ path, parameters }) =>
      path.startsWith('/api/') && parameters?.some((parameter) => parameter.in === 'query'),
  );
  expect(operations.length).toBeGreaterThan(8);
  for (const operation of operations) {
    const query = fc.record(
      Object.fromEntries(
        (operation.parameters ?? [])
          .filter((parameter) => parameter.in === 'query')
          .map(({ name, schema }) => [name, arbitraryNear(schema)]),
      ),
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(query, fc.constantFrom(...ids), (fields, id) => {
        const pairs = Object.entries(fields).map(
          ([name, value]) =>
            `${name}=${encodeURIComponent((typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed())}`,
        );
        return attempt(operation, id, `?${pairs.join('&')}`, {});
      }),
      { numRuns: 40 },
    );
  }
}, 120_000);

test('no id, cursor, key or content type causes a server error', async () => {
  const operations = app.contract.operations.filter(({ path }) => path.includes('{'));
  const rawIds = text.map((id) => id.toWellFormed()).filter((id) => id !== '' && id !== '.' && id !== '..');
  const headers = fc.record(
    {
      'idempotency-key': fc.string({ unit: 'grapheme-ascii' }),
      'x-env-id': fc.string({ unit: 'grapheme-ascii' }),
      'if-match': fc.string({ unit: 'grapheme-ascii' }),
      'content-type': fc.constantFrom(
        'application/json',
        'text/html',
        'application/json; charset=x',
        'nonsense',
        '',
      ),
    },
    { requiredKeys: [] },
  );
  for (const operation of operations) {
    await fc.assert(
      fc.asyncProperty(rawIds, headers, fc.constantFrom('', '{}', '[', 'null'), (id, given, raw) =>
        attempt(operation, id, '', { headers: given, ...(operation.method === 'GET' ? {} : { raw }) }),
      ),
      { numRuns: 25 },
    );
  }
}, 120_000);
