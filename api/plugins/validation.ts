import { Readable } from 'node:stream';
import { Ajv, type ErrorObject, type Options } from 'ajv';
import ajvFormats from 'ajv-formats';
import type { FastifyInstance, FastifyRequest, FastifySchemaCompiler } from 'fastify';
import { AppError, type FieldError } from '../../platform/errors.ts';
import { NO_CONTROL_CHARACTERS } from '../messages/addresses.ts';
import { HEADER_NAME_PATTERN, LABEL_PATTERN } from '../messages/content.schemas.ts';
import { strictObject } from '../schemas.ts';
import { pathNotFound } from './errors.ts';

const STRICT: Options = {
  allErrors: true,
  coerceTypes: false,
  useDefaults: true,
  removeAdditional: false,
  allowUnionTypes: true,
  strictRequired: false,
};
/** A query string knows text only. */
const QUERY: Options = { ...STRICT, coerceTypes: true };

/**
 * Values a request may hold: far above any valid one, and low enough that listing everything that is wrong with it
 * stays cheap.
 */
const MAX_VALUES = 20_000;
const MAX_ERRORS_SHOWN = 20;

/**
 * Refuses what fits no schema or could not be stored.
 *
 * @param shared schemas that routes refer to by name.
 */
export function installValidation(app: FastifyInstance, shared: readonly object[]): void {
  app.addHook('preValidation', async (request) => {
    // Nobody's path takes no body either, but that is not what its caller got wrong.
    if (request.is404) return;
    rejectUnstorableText(request);
    rejectUnexpectedBody(request);
  });
  rejectUnknownQueryParameters(app);
  app.setValidatorCompiler(requestValidators(shared));
}

const NO_QUERY = strictObject({});

/** A parameter that is ignored would be taken for one that worked. */
function rejectUnknownQueryParameters(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (!route.url.startsWith('/api/') || route.schema?.hide || route.schema?.querystring) return;
    route.schema = { ...route.schema, querystring: NO_QUERY };
  });
}

function requestValidators(shared: readonly object[]): FastifySchemaCompiler<object> {
  const compilers = { strict: new Ajv(STRICT), query: new Ajv(QUERY) };
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

/** `/inboxes//messages` names no inbox: a path nobody serves and not a wrong id. */
function hasEmptySegment(params: unknown): boolean {
  return Object.values(params as Record<string, string>).includes('');
}

/** Nothing has a name so long. */
function isTooLong(errors: ErrorObject[]): boolean {
  return errors.some(({ keyword }) => keyword === 'maxLength');
}

/** PostgreSQL stores neither NUL nor half of a surrogate pair, and no mail may carry them. */
function rejectUnstorableText({ body, query, params }: FastifyRequest): void {
  const open: { path: string; value: unknown }[] = [
    { path: '/params', value: params },
    { path: '/query', value: query },
    // Bytes on their way to storage hold no values of ours, only a socket and all that hangs on it.
    ...(body instanceof Readable ? [] : [{ path: '/body', value: body }]),
  ];
  let seen = 0;
  for (let entry = open.pop(); entry; entry = open.pop()) {
    const { path, value } = entry;
    seen += 1;
    if (seen > MAX_VALUES) throw invalidAt('/body', `holds more than ${MAX_VALUES} values`);
    if (typeof value === 'string') rejectUnstorableString(path, value);
    // Bytes on their way to storage hold no values yet.
    if (typeof value !== 'object' || value === null || value instanceof Readable) continue;
    for (const [name, member] of Object.entries(value)) {
      rejectUnstorableString(path, name);
      rejectPrototypeName(path, name);
      open.push({ path: truncatePath(`${path}/${pointer(name)}`), value: member });
    }
  }
}

function rejectUnstorableString(path: string, text: string): void {
  if (text.includes('\u0000')) throw invalidAt(path, 'holds the character NUL');
  if (!text.isWellFormed()) throw invalidAt(path, 'holds half of a surrogate pair');
}

/** Copied or merged, such a member would change what every object inherits. */
function rejectPrototypeName(path: string, name: string): void {
  if (name === '__proto__' || (name === 'prototype' && path.endsWith('/constructor')))
    throw invalidAt(`${path}/${name}`, 'is a name no field may have');
}

/** An operation without a body schema takes none; an empty object is none as well. */
function rejectUnexpectedBody({ body, routeOptions }: FastifyRequest): void {
  if (body === undefined || routeOptions.schema?.body) return;
  if (typeof body === 'object' && body !== null && Object.keys(body).length === 0) return;
  throw invalidAt('/body', 'must be empty: this operation takes no body');
}

function invalidAt(path: string, message: string): AppError {
  return validationFailure([{ path, message }]);
}

const PART_NAMES: Record<string, string> = { querystring: 'query' };

function validationError(part: string, found: ErrorObject[]): AppError {
  // A field that may be null is an anyOf: what is told is the fault of the other choice.
  const nullable = new Set(
    found.filter(({ keyword }) => keyword === 'anyOf').map(({ instancePath }) => instancePath),
  );
  const reported = found.filter(
    ({ keyword, params, instancePath }) =>
      keyword !== 'anyOf' &&
      // What keeps the name from being one is told beside it.
      keyword !== 'propertyNames' &&
      !(keyword === 'type' && params.type === 'null' && nullable.has(instancePath)),
  );
  const errors = reported.slice(0, MAX_ERRORS_SHOWN).map((error) => {
    const member = findMember(error);
    const end = member === undefined ? '' : `/${pointer(member)}`;
    return {
      path: truncatePath(`/${PART_NAMES[part] ?? part}${error.instancePath}${end}`),
      message: describeError(error, nullable.has(error.instancePath)),
    };
  });
  return validationFailure(errors);
}

/** The member an error is about where it is told of the object around it. */
function findMember({ keyword, params, propertyName }: ErrorObject): string | undefined {
  if (propertyName !== undefined) return propertyName;
  if (keyword === 'required') return String(params.missingProperty);
  if (keyword === 'additionalProperties') return String(params.additionalProperty);
  return undefined;
}

/** What patterns ask for, for readers who are told a field and not its schema. */
const PATTERN_DESCRIPTIONS: Record<string, string> = {
  [NO_CONTROL_CHARACTERS]: 'must not hold control characters, such as line ends',
  [LABEL_PATTERN]: 'must be one line, without a space at either end',
  [HEADER_NAME_PATTERN]: 'is no name of a header: printable ASCII without spaces and colons',
};

function describeError(
  { keyword, params, message = 'is not valid' }: ErrorObject,
  nullable: boolean,
): string {
  if (keyword === 'required') return 'is required';
  if (keyword === 'additionalProperties') return 'is not a field of this operation';
  if (keyword === 'enum') return `must be one of ${(params.allowedValues as unknown[]).join(', ')}`;
  if (keyword === 'format' && params.format === 'date-time')
    return 'must be a time with its zone, as 2026-11-21T09:30:00.000Z';
  const words = keyword === 'pattern' ? PATTERN_DESCRIPTIONS[params.pattern] : undefined;
  if (words !== undefined) return words;
  return keyword === 'type' && nullable ? `${message} or null` : message;
}

function validationFailure(errors: FieldError[]): AppError {
  const [first] = errors;
  return new AppError('validation_error', {
    detail: first ? `${first.path} ${first.message}.` : 'The request does not fit its schema.',
    fix: 'Change the fields named in errors; the schema of each operation is in /openapi.json.',
    errors,
  });
}

/** Names and depth are the caller's to choose; what is told of them is bounded. */
function truncatePath(path: string): string {
  return path.slice(0, 1024);
}

/** A name as one step of a JSON Pointer (RFC 6901). */
export function pointer(name: string): string {
  return name.slice(0, 128).replaceAll('~', '~0').replaceAll('/', '~1');
}
