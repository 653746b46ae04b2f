import { Readable } from 'node:stream';
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import ajvFormats from 'ajv-formats';
import type { FastifyInstance, FastifyRequest, FastifySchemaCompiler } from 'fastify';
import { AppError, type FieldError } from '../../platform/errors.ts';
import { strictObject } from '../schemas.ts';
import { describeField } from './client-path.ts';
import { pathNotFound } from './error-responses.ts';
import type { ExampleSchema, ResolveSchema } from './schema-example.ts';
import { describeErrors, encodePointerSegment, truncatePath } from './validation-errors.ts';

const STRICT_OPTIONS: Options = {
  allErrors: true,
  coerceTypes: false,
  useDefaults: true,
  removeAdditional: false,
  allowUnionTypes: true,
  strictRequired: false,
  // Errors carry their schema, for an example and the names of the known fields.
  verbose: true,
};
/** Query strings contain only text. */
const QUERY_OPTIONS: Options = { ...STRICT_OPTIONS, coerceTypes: true };

/** Maximum number of values in a request: far more than any valid request has, and few enough to validate cheaply. */
const MAX_VALUES = 20_000;

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

/** By list of shared schemas: all apps of a process, of which the tests start many, compile each schema once. */
const compilersOf = new WeakMap<readonly object[], Record<'strict' | 'query', Ajv>>();

function createCompilers(shared: readonly object[]): Record<'strict' | 'query', Ajv> {
  const compilers = { strict: new Ajv(STRICT_OPTIONS), query: new Ajv(QUERY_OPTIONS) };
  for (const ajv of Object.values(compilers)) {
    ajvFormats.default(ajv, ['date-time']);
    for (const schema of shared) ajv.addSchema(schema);
  }
  compilersOf.set(shared, compilers);
  return compilers;
}

function requestValidators(shared: readonly object[]): FastifySchemaCompiler<object> {
  const compilers = compilersOf.get(shared) ?? createCompilers(shared);
  return ({ schema, httpPart, method }) => {
    const ajv = httpPart === 'querystring' ? compilers.query : compilers.strict;
    const resolve: ResolveSchema = (reference) =>
      ajv.getSchema(reference)?.schema as ExampleSchema | undefined;
    // Compiled with the first request: all of them take most of a second, and a process serves some of them only.
    let compiled: ValidateFunction | undefined;
    return (value: unknown) => {
      compiled ??= ajv.compile(schema);
      const validate = compiled;
      if (validate(value))
        return { value: httpPart === 'body' && method === 'POST' ? withoutNulls(value) : value };
      const errors = validate.errors ?? [];
      if (httpPart === 'params' && (hasEmptySegment(value) || isTooLong(errors)))
        return { error: pathNotFound() };
      return { error: validationFailure(describeErrors(httpPart ?? 'body', errors, resolve)) };
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
    if (typeof value !== 'object' || value === null || isRawBody(value)) continue;
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

/**
 * In a POST, `null` means that a field is not given: a client may send back what it read. Runs after validation, so that
 * only fields that may be null are dropped.
 */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null || isRawBody(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([name, member]) => [name, withoutNulls(member)]),
  );
}

function validationFailure(errors: FieldError[]): AppError {
  const [first] = errors;
  return new AppError('validation_error', {
    detail: first ? describeField(first) : 'The request does not match its schema.',
    fix: 'Correct what errors lists. /openapi.json has the schema of each operation.',
    errors,
  });
}

/** A body that a route reads itself, or whose signature covers its bytes. */
const isRawBody = (value: object): boolean => value instanceof Readable || Buffer.isBuffer(value);
