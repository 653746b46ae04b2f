import type { ErrorObject } from 'ajv';
import type { FieldError } from '../../platform/errors.ts';
import { NOTE_PATTERN } from '../admin/note.ts';
import { NO_CONTROL_CHARACTERS } from '../messages/addresses.ts';
import { HEADER_NAME_PATTERN, LABEL_PATTERN } from '../messages/content.schemas.ts';
import { findNearestName } from './nearest-name.ts';
import {
  buildExample,
  type ExampleSchema,
  listTypes,
  MADE_UP_TEXT,
  type ResolveSchema,
} from './schema-example.ts';

const MAX_REPORTED_ERRORS = 20;
const PART_NAMES: Record<string, string> = { querystring: 'query' };

/** Describes what is wrong with a part of the request, and what is expected instead. */
export function describeErrors(part: string, found: ErrorObject[], resolve: ResolveSchema): FieldError[] {
  // A nullable field is an anyOf: only the errors of the non-null branch are reported.
  const nullable = new Set(
    found.filter(({ keyword }) => keyword === 'anyOf').map(({ instancePath }) => instancePath),
  );
  const reported = found.filter(
    ({ keyword, params, instancePath }) =>
      keyword !== 'anyOf' &&
      // The reason why the name is invalid is a separate error.
      keyword !== 'propertyNames' &&
      !(keyword === 'type' && params.type === 'null' && nullable.has(instancePath)),
  );
  return reported.slice(0, MAX_REPORTED_ERRORS).map((error) => {
    const member = findMember(error);
    const end = member === undefined ? '' : `/${encodePointerSegment(member)}`;
    return {
      path: truncatePath(`/${PART_NAMES[part] ?? part}${error.instancePath}${end}`),
      message: describeError(error, { part, nullable: nullable.has(error.instancePath), resolve }),
    };
  });
}

/** Returns the member that an error concerns, if Ajv reports it on the enclosing object. */
function findMember({ keyword, params, propertyName }: ErrorObject): string | undefined {
  if (propertyName !== undefined) return propertyName;
  if (keyword === 'required') return String(params.missingProperty);
  if (keyword === 'additionalProperties') return String(params.additionalProperty);
  return undefined;
}

/** Error messages for patterns. */
const PATTERN_DESCRIPTIONS: Record<string, string> = {
  [NOTE_PATTERN]: 'must give the reason in words',
  [NO_CONTROL_CHARACTERS]: 'must not contain control characters, such as line breaks',
  [LABEL_PATTERN]: 'must be a single line without leading or trailing spaces',
  [HEADER_NAME_PATTERN]: 'is not a header name: printable ASCII without spaces and colons',
};

interface ErrorContext {
  part: string;
  nullable: boolean;
  resolve: ResolveSchema;
}

function describeError(error: ErrorObject, { part, nullable, resolve }: ErrorContext): string {
  const { keyword, params, message = 'is not valid' } = error;
  const schema = (error.parentSchema ?? {}) as ExampleSchema;
  if (keyword === 'required') {
    const member = schema.properties?.[String(params.missingProperty)];
    return member ? withExample('is required', member, resolve) : 'is required';
  }
  if (keyword === 'additionalProperties')
    return describeUnknown(String(params.additionalProperty), part, Object.keys(schema.properties ?? {}));
  if (keyword === 'enum') return `must be one of ${(params.allowedValues as unknown[]).join(', ')}`;
  if (keyword === 'format' && params.format === 'date-time')
    return 'must be a time with a zone, such as 2026-11-21T09:30:00.000Z';
  const words = keyword === 'pattern' ? PATTERN_DESCRIPTIONS[params.pattern] : undefined;
  if (words !== undefined) return words;
  if (keyword === 'type') return describeType(schema, { nullable, resolve });
  return describeBound(keyword, params.limit) ?? message;
}

/** Of a size or number that is out of bounds. */
function describeBound(keyword: string, limit: unknown): string | undefined {
  const [bound, unit] = BOUNDS[keyword] ?? [];
  if (bound === undefined) return undefined;
  if (unit === undefined) return `must be ${bound} ${limit}`;
  return `must have ${bound} ${limit} ${unit}${limit === 1 ? '' : 's'}`;
}

const BOUNDS: Record<string, [string, string?]> = {
  minimum: ['at least'],
  maximum: ['at most'],
  minLength: ['at least', 'character'],
  maxLength: ['at most', 'character'],
  minItems: ['at least', 'item'],
  maxItems: ['at most', 'item'],
  minProperties: ['at least', 'field'],
  maxProperties: ['at most', 'field'],
};

/** Not all names: an operation may have dozens. */
const MAX_NAMES = 20;

function describeUnknown(name: string, part: string, known: string[]): string {
  const kind = part === 'querystring' ? 'query parameter' : 'field';
  if (known.length === 0) return `is not a ${kind} of this operation, which has none here`;
  const nearest = findNearestName(name, known);
  if (nearest !== undefined) return `is not a ${kind} of this operation; did you mean ${nearest}?`;
  return `is not a ${kind} of this operation, which has ${known.slice(0, MAX_NAMES).join(', ')}`;
}

const TYPE_NAMES: Record<string, string> = {
  array: 'a list',
  object: 'an object',
  integer: 'an integer',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  null: 'null',
};

function describeType(schema: ExampleSchema, { nullable, resolve }: Omit<ErrorContext, 'part'>): string {
  const types = [...new Set([...listTypes(schema), ...(nullable ? ['null'] : [])])];
  const names = types.map((type) => TYPE_NAMES[type] ?? type).join(' or ');
  return withExample(`must be ${names}`, schema, resolve);
}

const MAX_EXAMPLE_LENGTH = 300;

/** Adds an example, unless it is only the placeholder, which would mislead for an id. */
function withExample(words: string, schema: ExampleSchema, resolve: ResolveSchema): string {
  const example = buildExample(schema, resolve);
  if (example === MADE_UP_TEXT) return words;
  return `${words}, such as ${JSON.stringify(example).slice(0, MAX_EXAMPLE_LENGTH)}`;
}

/** The caller controls names and depth, so the reported path is truncated. */
export function truncatePath(path: string): string {
  return path.slice(0, 1024);
}

/** Encodes a name as one segment of a JSON Pointer (RFC 6901). */
export function encodePointerSegment(name: string): string {
  return name.slice(0, 128).replaceAll('~', '~0').replaceAll('/', '~1');
}
