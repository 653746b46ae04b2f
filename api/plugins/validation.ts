import { Ajv, type ErrorObject, type Options } from 'ajv';
import ajvFormats from 'ajv-formats';
import type { FastifyInstance, FastifyRequest, FastifySchemaCompiler } from 'fastify';
import { AppError, type FieldError } from '../../platform/errors.ts';
import { closed } from '../schemas.ts';

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
 * Reads JSON, an empty body as none; refuses what fits no schema or could not be stored.
 *
 * @param shared schemas that routes refer to by name.
 */
export function installValidation(app: FastifyInstance, shared: readonly object[]): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body: string, done) => {
    if (body === '') done(null, undefined);
    else parse(request, body, done);
  });
  app.addHook('preValidation', async (request) => {
    refuseUnstorable(request);
    refuseUnexpectedBody(request);
  });
  refuseUnknownQueries(app);
  app.setValidatorCompiler(requestValidators(shared));
}

const NO_QUERY = closed({});

/** A parameter that is ignored would be taken for one that worked. */
function refuseUnknownQueries(app: FastifyInstance): void {
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
      return { error: validationError(httpPart ?? 'body', validate.errors ?? []) };
    };
  };
}

/** PostgreSQL stores neither NUL nor half of a surrogate pair, and no mail may carry them. */
function refuseUnstorable({ body, query, params }: FastifyRequest): void {
  const open: { path: string; value: unknown }[] = [
    { path: '/params', value: params },
    { path: '/query', value: query },
    { path: '/body', value: body },
  ];
  let seen = 0;
  for (let entry = open.pop(); entry; entry = open.pop()) {
    const { path, value } = entry;
    seen += 1;
    if (seen > MAX_VALUES) throw refusal('/body', `holds more than ${MAX_VALUES} values`);
    if (typeof value === 'string') refuseText(path, value);
    if (typeof value !== 'object' || value === null) continue;
    for (const [name, member] of Object.entries(value)) {
      refuseText(path, name);
      open.push({ path: clip(`${path}/${pointer(name)}`), value: member });
    }
  }
}

function refuseText(path: string, text: string): void {
  if (text.includes('\u0000')) throw refusal(path, 'holds the character NUL');
  if (!text.isWellFormed()) throw refusal(path, 'holds half of a surrogate pair');
}

/** An operation without a body schema takes none; an empty object is none as well. */
function refuseUnexpectedBody({ body, routeOptions }: FastifyRequest): void {
  if (body === undefined || routeOptions.schema?.body) return;
  if (typeof body === 'object' && body !== null && Object.keys(body).length === 0) return;
  throw refusal('/body', 'must be empty: this operation takes no body');
}

function refusal(path: string, message: string): AppError {
  return validationFailure([{ path, message }]);
}

const PARTS: Record<string, string> = { querystring: 'query' };

function validationError(part: string, found: ErrorObject[]): AppError {
  const errors = found.slice(0, MAX_ERRORS_SHOWN).map(({ instancePath, keyword, params, message }) => {
    const member =
      keyword === 'required'
        ? String(params.missingProperty)
        : keyword === 'additionalProperties'
          ? String(params.additionalProperty)
          : undefined;
    return {
      path: clip(
        `/${PARTS[part] ?? part}${instancePath}${member === undefined ? '' : `/${pointer(member)}`}`,
      ),
      message: describe(keyword, params, message),
    };
  });
  return validationFailure(errors);
}

function describe(keyword: string, params: Record<string, unknown>, message = 'is not valid'): string {
  if (keyword === 'required') return 'is required';
  if (keyword === 'additionalProperties') return 'is not a field of this operation';
  if (keyword === 'enum') return `must be one of ${(params.allowedValues as unknown[]).join(', ')}`;
  return message;
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
function clip(path: string): string {
  return path.slice(0, 1024);
}

function pointer(name: string): string {
  return name.slice(0, 128).replaceAll('~', '~0').replaceAll('/', '~1');
}
