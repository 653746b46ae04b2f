import { Readable } from 'node:stream';
import { Ajv, type ErrorObject, type Options } from 'ajv';
import ajvFormats from 'ajv-formats';
import type { FastifyInstance, FastifyRequest, FastifySchemaCompiler } from 'fastify';
import { AppError, type FieldError } from '../../platform/errors.ts';
import { NO_CONTROL_CHARACTERS } from '../messages/addresses.ts';
import { HEADER_NAME_PATTERN, LABEL_PATTERN } from '../messages/content.schemas.ts';
import { strictObject } from '../schemas.ts';
import { pathNotFound } from './errors.ts';

const STRICT_OPTIONS: Options = {
  allErrors: true,
  coerceTypes: false,
  useDefaults: true,
  removeAdditional: false,
  allowUnionTypes: true,
  strictRequired: false,
};
/** Query strings contain only text. */
const QUERY_OPTIONS: Options = { ...STRICT_OPTIONS, coerceTypes: true };

/** Maximum number of values in a request: far more than any valid request has, and few enough to validate cheaply. */
const MAX_VALUES = 20_000;
const MAX_REPORTED_ERRORS = 20;

/**
 * Rejects requests that violate their schema or contain text that cannot be stored.
 *
 * @param shared schemas that routes refer to by name.
 */
export function installValidation(app: FastifyInstance, shared: readonly object[]): void {
  app.addHook('preValidation', async (request) => {
    // An unknown path is reported as such, regardless of the body.
    if (request.is404) return;
    rejectUnstorableText(request);
    rejectUnexpectedBody(request);
  });
  rejectUnknownQueryParameters(app);
  app.setValidatorCompiler(requestValidators(shared));
}

const NO_QUERY = strictObject({});

/** Unknown parameters are rejected, because a client would not notice that one is ignored. */
function rejectUnknownQueryParameters(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (!route.url.startsWith('/api/') || route.schema?.hide || route.schema?.querystring) return;
    route.schema = { ...route.schema, querystring: NO_QUERY };
  });
}

function requestValidators(shared: readonly object[]): FastifySchemaCompiler<object> {
  const compilers = { strict: new Ajv(STRICT_OPTIONS), query: new Ajv(QUERY_OPTIONS) };
  for (const ajv of Object.values(compilers)) {
    ajvFormats.default(ajv, ['date-time']);
    for (const schema of shared) ajv.addSchema(schema);
  }
  return ({ schema, httpPart }) => {
    const validate = (httpPart === 'querystring' ? compilers.query : compilers.strict).compile(schema);
    return (value: unknown) => {
      if (validate(value)) return { value };
      const errors = validate.errors ?? [];
      if (httpPart === 'params' && (hasEmptySegment(value) || isTooLong(errors)))
        return { error: pathNotFound() };
      return { error: validationError(httpPart ?? 'body', errors) };
    };
  };
}

/** `/inboxes//messages` contains no id, so the path is unknown rather than the id invalid. */
function hasEmptySegment(params: unknown): boolean {
  return Object.values(params as Record<string, string>).includes('');
}

/** No id is this long, so the path is unknown. */
function isTooLong(errors: ErrorObject[]): boolean {
  return errors.some(({ keyword }) => keyword === 'maxLength');
}

/** PostgreSQL cannot store NUL or unpaired surrogates, and messages must not contain them. */
function rejectUnstorableText({ body, query, params }: FastifyRequest): void {
  const pending: { path: string; value: unknown }[] = [
    { path: '/params', value: params },
    { path: '/query', value: query },
    // An upload stream contains no values.
    ...(body instanceof Readable ? [] : [{ path: '/body', value: body }]),
  ];
  let valueCount = 0;
  for (let entry = pending.pop(); entry; entry = pending.pop()) {
    const { path, value } = entry;
    valueCount += 1;
    if (valueCount > MAX_VALUES) throw invalidAt('/body', `must not contain more than ${MAX_VALUES} values`);
    if (typeof value === 'string') rejectUnstorableString(path, value);
    if (typeof value !== 'object' || value === null || value instanceof Readable) continue;
    for (const [name, member] of Object.entries(value)) {
      rejectUnstorableString(path, name);
      rejectPrototypeName(path, name);
      pending.push({ path: truncatePath(`${path}/${encodePointerSegment(name)}`), value: member });
    }
  }
}

function rejectUnstorableString(path: string, text: string): void {
  if (text.includes('\u0000')) throw invalidAt(path, 'must not contain the character NUL');
  if (!text.isWellFormed()) throw invalidAt(path, 'must not contain an unpaired surrogate');
}

/** Prevents prototype pollution: copying or merging such a member would change what every object inherits. */
function rejectPrototypeName(path: string, name: string): void {
  if (name === '__proto__' || (name === 'prototype' && path.endsWith('/constructor')))
    throw invalidAt(`${path}/${name}`, 'is not allowed as a field name');
}

/** An operation without a body schema accepts no body, or an empty object. */
function rejectUnexpectedBody({ body, routeOptions }: FastifyRequest): void {
  if (body === undefined || routeOptions.schema?.body) return;
  if (typeof body === 'object' && body !== null && Object.keys(body).length === 0) return;
  throw invalidAt('/body', 'must be empty: this operation does not accept a body');
}

function invalidAt(path: string, message: string): AppError {
  return validationFailure([{ path, message }]);
}

const PART_NAMES: Record<string, string> = { querystring: 'query' };

function validationError(part: string, found: ErrorObject[]): AppError {
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
  const errors = reported.slice(0, MAX_REPORTED_ERRORS).map((error) => {
    const member = findMember(error);
    const end = member === undefined ? '' : `/${encodePointerSegment(member)}`;
    return {
      path: truncatePath(`/${PART_NAMES[part] ?? part}${error.instancePath}${end}`),
      message: describeError(error, nullable.has(error.instancePath)),
    };
  });
  return validationFailure(errors);
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
  [NO_CONTROL_CHARACTERS]: 'must not contain control characters, such as line breaks',
  [LABEL_PATTERN]: 'must be a single line without leading or trailing spaces',
  [HEADER_NAME_PATTERN]: 'is not a header name: printable ASCII without spaces and colons',
};

function describeError(
  { keyword, params, message = 'is not valid' }: ErrorObject,
  nullable: boolean,
): string {
  if (keyword === 'required') return 'is required';
  if (keyword === 'additionalProperties') return 'is not a field of this operation';
  if (keyword === 'enum') return `must be one of ${(params.allowedValues as unknown[]).join(', ')}`;
  if (keyword === 'format' && params.format === 'date-time')
    return 'must be a time with a zone, such as 2026-11-21T09:30:00.000Z';
  const words = keyword === 'pattern' ? PATTERN_DESCRIPTIONS[params.pattern] : undefined;
  if (words !== undefined) return words;
  return keyword === 'type' && nullable ? `${message} or null` : message;
}

function validationFailure(errors: FieldError[]): AppError {
  const [first] = errors;
  return new AppError('validation_error', {
    detail: first ? `${first.path} ${first.message}.` : 'The request does not match its schema.',
    fix: 'Correct the fields listed in errors. /openapi.json has the schema of each operation.',
    errors,
  });
}

/** The caller controls names and depth, so the reported path is truncated. */
function truncatePath(path: string): string {
  return path.slice(0, 1024);
}

/** Encodes a name as one segment of a JSON Pointer (RFC 6901). */
export function encodePointerSegment(name: string): string {
  return name.slice(0, 128).replaceAll('~', '~0').replaceAll('/', '~1');
}
