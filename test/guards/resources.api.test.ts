import { expect, test } from '@jest/globals';
import { EVENT_TYPES } from '../../domain/events/event-types.ts';
import type { Operation } from '../support/contract.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();

interface Schema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  discriminator?: { propertyName: string; mapping: Record<string, string> };
}

/** Bodies in the format of another standard, with their reason. */
const FOREIGN_BODIES: Record<string, string> = {
  RegistrationOptions: 'WebAuthn: what browsers pass to navigator.credentials.create',
  AssertionOptions: 'WebAuthn: what browsers pass to navigator.credentials.get',
};
/** Fields of an object that only refers to a resource. */
const REFERENCE_FIELDS = ['id', 'type', 'kind', 'name'];
/** Objects with an id that are no resources, with their reason. */
const PARTS: Record<string, string> = {
  'AgentMessage attachments': 'a flat shape of few tokens',
  'BulkSuspensionResults results': 'the result of one item of the request, which has this id and type',
  'WorkflowRunDetails history': 'an event of Temporal in the history of its run',
};

const nameOf = (reference: string) => reference.split('/').at(-1) ?? '';
const schemaOf = (name: string) => app.contract.description.components.schemas[name] as Schema;
const kindOf = ({ properties, required }: Schema) =>
  required?.includes('object') ? properties?.object?.const : undefined;
const isEvent = (name: string) => /Event$/.test(name) && schemaOf(name)?.properties?.org_id !== undefined;

/** JSON bodies of what succeeded: those of the API, and of the second paths that the specification names. */
function answersOf({ operationId, path, responses }: Operation): { operationId: string; schema: Schema }[] {
  if (path.startsWith('/health/')) return [];
  return Object.entries(responses).flatMap(([status, { content }]) => {
    const schema = content?.['application/json']?.schema as Schema | undefined;
    return status.startsWith('2') && schema ? [{ operationId, schema }] : [];
  });
}
const answers = () => app.contract.operations.flatMap(answersOf);

/** The things that an answer is or lists: branches of a union, and the elements of a list. */
function* thingsOf(schema: Schema, name = ''): Generator<[name: string, thing: Schema]> {
  if (schema.$ref) yield* thingsOf(schemaOf(nameOf(schema.$ref)), nameOf(schema.$ref));
  else if (schema.oneOf ?? schema.anyOf)
    for (const branch of schema.oneOf ?? schema.anyOf ?? []) yield* thingsOf(branch, name);
  else if (schema.properties?.data?.items && !schema.properties.object)
    yield* thingsOf(schema.properties.data.items, name);
  else yield [name, schema];
}

/** Every object within what is answered, with the name of its schema and its field; each schema once. */
function* partsOf(value: unknown, path: string, seen: Set<string>): Generator<[path: string, part: Schema]> {
  if (typeof value !== 'object' || value === null) return;
  const schema = value as Schema;
  if (schema.$ref) {
    const name = nameOf(schema.$ref);
    if (seen.has(name) || isEvent(name) || name in FOREIGN_BODIES) return;
    seen.add(name);
    yield* partsOf(schemaOf(name), name, seen);
    return;
  }
  yield [path, schema];
  for (const [name, field] of Object.entries(schema.properties ?? {}))
    yield* partsOf(field, `${path.split(' ')[0]} ${name}`, seen);
  for (const inner of [schema.items, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])])
    yield* partsOf(inner, path, seen);
}
function parts(): [path: string, part: Schema][] {
  const seen = new Set<string>();
  return answers().flatMap(({ operationId, schema }) => [...partsOf(schema, operationId, seen)]);
}

test('every answer is a resource that names its kind, or a list of such', () => {
  const things = answers().flatMap(({ operationId, schema }) =>
    [...thingsOf(schema)].map(([name, thing]) => ({ operationId, name, kind: kindOf(thing) })),
  );
  expect(things.length).toBeGreaterThan(250);
  expect(new Set(things.map(({ kind }) => kind)).size).toBeGreaterThan(60);
  const unnamed = things.filter(
    ({ name, kind }) => kind === undefined && !isEvent(name) && !(name in FOREIGN_BODIES),
  );
  expect(unnamed).toEqual([]);
});

test('every part of an answer with an id of its own is a resource that names its kind', () => {
  const withId = parts().filter(
    ([, { properties = {} }]) =>
      properties.id && Object.keys(properties).some((name) => !REFERENCE_FIELDS.includes(name)),
  );
  expect(withId.length).toBeGreaterThan(60);
  const unnamed = withId.filter(([, part]) => kindOf(part) === undefined).map(([path]) => path);
  expect(unnamed.sort()).toEqual(Object.keys(PARTS).sort());
});

test('a page names no kind: its items do', () => {
  const pages = parts().filter(([, { properties }]) => properties?.next_cursor);
  expect(pages.length).toBeGreaterThan(20);
  for (const [, { properties = {} }] of pages)
    expect(Object.keys(properties).sort()).toEqual(['data', 'has_more', 'next_cursor']);
});

test('every union of objects in an answer is decided by a discriminator', () => {
  const isObject = ({ $ref, properties }: Schema) =>
    Boolean(properties) || Boolean($ref && schemaOf(nameOf($ref)).properties);
  const unions = parts().filter(
    ([, { anyOf, oneOf }]) => [...(anyOf ?? []), ...(oneOf ?? [])].filter(isObject).length > 1,
  );
  expect(unions.length).toBeGreaterThan(15);
  for (const [path, { anyOf = [], oneOf = [], discriminator }] of unions) {
    // Two views of a message, both of the kind `message`.
    if (anyOf.some(({ $ref = '' }) => nameOf($ref) === 'AgentMessage')) continue;
    const property = path === 'Event' ? 'type' : 'object';
    const decided = oneOf.map(({ $ref = '' }) => [
      schemaOf(nameOf($ref)).properties?.[property]?.const,
      $ref,
    ]);
    expect({ path, property: discriminator?.propertyName, decided }).toEqual({
      path,
      property,
      decided: Object.entries(discriminator?.mapping ?? {}).map(([value, $ref]) => [value, $ref]),
    });
  }
});

const ENVELOPE = ['id', 'type', 'timestamp', 'org_id', 'env_id', 'data'];
const OF_MESSAGE = ['message_id', 'thread_id', 'inbox_id'];
const ADDRESSED = ['from_address', 'to_addresses', 'subject'];
/** Fields of `data`, copied from the specification. It leaves the other types open. */
const SPECIFIED: Partial<Record<(typeof EVENT_TYPES)[number], string[]>> = {
  'message.received': [...OF_MESSAGE, ...ADDRESSED, 'extracted_text', 'has_attachments', 'received_at'],
  'message.sent': [...OF_MESSAGE, ...ADDRESSED, 'provider_message_id', 'sent_at'],
  'message.delivered': [...OF_MESSAGE, 'to_addresses', 'delivered_at', 'processing_time_ms'],
  'message.bounced': [...OF_MESSAGE, 'bounce_type', 'bounce_sub_type', 'bounced_recipients', 'bounced_at'],
  'message.complained': ['message_id', 'inbox_id', 'complained_recipients', 'feedback_type', 'complained_at'],
  'message.rejected': ['inbox_id', ...ADDRESSED, 'rejection_reason', 'rejection_detail', 'rejected_at'],
  'domain.verified': [
    'domain_id',
    'domain_name',
    'verification_status',
    'spf_status',
    'dkim_status',
    'dmarc_status',
    'verified_at',
  ],
};

test('an event has the fields of the specification, and no kind', () => {
  const { schemas } = app.contract.description.components;
  const events = (schemaOf('Event').oneOf ?? []).map(({ $ref = '' }) => schemas[nameOf($ref)] as Schema);
  expect(events.length).toBe(EVENT_TYPES.length);
  for (const { properties = {} } of events) {
    const type = properties.type?.const as (typeof EVENT_TYPES)[number];
    const data = Object.keys(properties.data?.properties ?? {});
    expect({ type, fields: Object.keys(properties) }).toEqual({ type, fields: [...ENVELOPE, 'redacted'] });
    expect(data).not.toContain('object');
    const specified = SPECIFIED[type];
    if (specified)
      expect({ type, data: data.filter((name) => name !== 'truncated').sort() }).toEqual({
        type,
        data: [...specified].sort(),
      });
  }
});
