import type { Resolver, Schema } from './openapi.ts';

const MAX_DEPTH = 5;
const UNIQUE = '01m7y7gtmhe8qswknxmz1dgp3s';

/** What a field with such a name holds, for examples that read like real answers. */
const BY_NAME: readonly [RegExp, unknown][] = [
  [/^(?:.*_)?(?:email|address|addresses|recipient|from|to|cc|bcc|delivered_to)$/, 'ada@people.example'],
  [/^username$/, 'first-agent'],
  [/subject$/, 'The report you asked for'],
  [/^(?:text_body|text|extracted_text|preview)$/, 'Here it is.'],
  [/^html_body$/, '<p>Here it is.</p>'],
  [/^(?:file)?name$|^display_name$/, 'Ada'],
  [/^client_id$/, 'first-inbox'],
  [/^(?:next_)?cursor$/, 'eyJpZCI6IjAxIn0'],
  [/domain/, 'shop.example'],
  [/url$|^redirect/, 'https://receiver.example.com/hook'],
  [/^request_id$/, `req_${UNIQUE}`],
  [/^(?:ip|.*_ip|ip_address)$/, '203.0.113.7'],
  [/^slug$/, 'acme'],
];

const PREFIX_BY_NAME: Readonly<Record<string, string>> = {
  inbox_id: 'inb',
  message_id: 'msg',
  thread_id: 'thr',
  draft_id: 'drf',
  env_id: 'env',
  org_id: 'org',
  organization_id: 'org',
  user_id: 'usr',
  event_id: 'evt',
  endpoint_id: 'whe',
  attachment_id: 'att',
  domain_id: 'dom',
  key_id: 'key',
};

/** A value that fits a schema, for the samples of the reference. */
export function createExamples(resolver: Resolver) {
  function exampleOf(given: Schema, name = '', depth = 0): unknown {
    const schema = resolver.schema(given);
    const [stated] = schema.examples ?? [];
    if (stated !== undefined) return stated;
    if (name === 'direction') return 'outbound';
    const fixed = schema.const ?? schema.default ?? schema.enum?.[0] ?? schema['x-known-values']?.[0];
    if (fixed !== undefined && fixed !== null) return fixed;
    const branch = (schema.anyOf ?? schema.oneOf)?.find(({ type }) => type !== 'null');
    if (branch)
      return exampleOf({ ...branch, description: schema.description ?? branch.description }, name, depth);
    const type = [schema.type ?? []].flat().find((each) => each !== 'null');
    if (type === 'array') return depth >= MAX_DEPTH ? [] : [exampleOf(schema.items ?? {}, name, depth + 1)];
    if (type === 'object' || schema.properties) return exampleOfObject(schema, depth);
    if (type === 'boolean') return false;
    if (type === 'integer' || type === 'number') return schema.minimum ?? 1;
    return exampleOfText(schema, name);
  }

  function exampleOfObject({ properties = {} }: Schema, depth: number): Record<string, unknown> {
    if (depth >= MAX_DEPTH) return {};
    return Object.fromEntries(
      Object.entries(properties).map(([key, property]) => [key, exampleOf(property, key, depth + 1)]),
    );
  }

  return exampleOf;
}

function exampleOfText({ format, description = '', type }: Schema, name: string): string | null {
  if (format === 'date-time')
    return /_at$/.test(name) && [type].flat().includes('null') ? null : '2026-11-21T09:30:00.000Z';
  const [, prefix = PREFIX_BY_NAME[name]] = /\b([a-z]{3})_…/.exec(description) ?? [];
  if (prefix !== undefined) return `${prefix}_${UNIQUE}`;
  const [, known] = BY_NAME.find(([pattern]) => pattern.test(name)) ?? [];
  if (known !== undefined) return known as string;
  return [type].flat().includes('null') ? null : '…';
}
