import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import type { Permission } from '../../domain/identity/permissions.ts';
import type { ImpersonationAccess } from '../../domain/impersonation/impersonation-access.ts';
import type { StaffRole } from '../../domain/staff/staff-scope.ts';
import { existsOperation, listNamedOperations } from './named-operations.ts';
import { testStack } from './stack.ts';

export interface Operation {
  operationId: string;
  method: string;
  /** As in the description: `/api/v1/inboxes/{id}`. */
  path: string;
  summary?: string;
  parameters?: Parameter[];
  requestBody?: { required?: boolean; content: Record<string, { schema: object }> };
  responses: Record<string, Response>;
  tags?: string[];
  /** The operation that this one is a second path of. */
  'x-alias-of'?: string;
  security?: object[];
  /** The permission that the operation requires; unset for public operations. */
  'x-permission'?: Permission;
  /** Any credential may call the operation. */
  'x-credential'?: 'any';
  /** What an impersonation may do with it; unset for operations without a permission. */
  'x-impersonation'?: ImpersonationAccess;
  /** Operations of staff. */
  'x-staff-role'?: StaffRole;
  /** The permission to read what a change returns. */
  'x-read-permission'?: Permission;
}

interface Description {
  paths: Record<string, Record<string, Omit<Operation, 'method' | 'path'>>>;
  components: {
    schemas: Record<string, object>;
    responses: Record<string, Response>;
    parameters: Record<string, Parameter>;
  };
  tags: { name: string; description: string }[];
  webhooks: Record<string, { post: { operationId: string } }>;
}

interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: object;
}

interface Response {
  $ref?: string;
  description?: string;
  content?: Record<string, { schema: object }>;
}

/** The API's OpenAPI description, and a check of responses against it. */
export interface Contract {
  description: Description;
  operations: Operation[];
  /** @throws Error if the description does not contain the response's status or body. */
  verify(method: string, url: string, response: LightMyRequestResponse): void;
}

/**
 * Reads the description of an app. It depends on nothing but the public URL, and making it takes more time than building
 * the app, so that the first test file of a run makes it for all.
 */
function readDescription(app: FastifyInstance, publicUrl: string): Description {
  const file = join(testStack().directory, `openapi-${encodeURIComponent(publicUrl)}.json`);
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Description;
  const description = app.swagger() as unknown as Description;
  // Other processes must not read half of it.
  writeFileSync(`${file}.${process.pid}`, JSON.stringify(description));
  renameSync(`${file}.${process.pid}`, file);
  return description;
}

/** Compiling the schemas takes longer than most tests, so that the files of a Jest worker share a contract. */
export function readContract(app: FastifyInstance, publicUrl: string): Contract {
  const contract = contracts.get(publicUrl) ?? createContract(app, publicUrl);
  contracts.set(publicUrl, contract);
  return contract;
}
const contracts = new Map<string, Contract>();

function createContract(app: FastifyInstance, publicUrl: string): Contract {
  const description = readDescription(app, publicUrl);
  const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      ...(operation.parameters ? { parameters: resolveParameters(operation.parameters, description) } : {}),
      responses: resolveResponses(operation.responses, description),
      path,
      method: method.toUpperCase(),
    })),
  );
  // A concrete path comes before one with parameters.
  const parametersOf = ({ path }: Operation) => path.split('{').length;
  const patterns = Object.groupBy(
    operations
      .toSorted((a, b) => parametersOf(a) - parametersOf(b))
      .map((operation) => ({ operation, pattern: patternOf(operation.path) })),
    ({ operation }) => operation.method,
  );
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  ajvFormats.default(ajv, ['date-time']);
  ajv.addSchema(closed(withAnyEventData(description)), 'api');
  const validators = new Map<object, ValidateFunction>();

  function validatorOf(schema: object): ValidateFunction {
    let validate = validators.get(schema);
    if (!validate) {
      // References in the description start at its root.
      const rooted = JSON.parse(
        JSON.stringify(schema).replaceAll('"#/components', '"api#/components'),
      ) as object;
      validate = ajv.compile(closed(rooted));
      validators.set(schema, validate);
    }
    return validate;
  }

  /** Whatever a problem says about the next step must exist. */
  function verifyFix({ fix }: { fix?: unknown }): void {
    const unknown = listNamedOperations(String(fix)).filter((named) => !existsOperation(named, operations));
    if (unknown.length > 0) throw new Error(`"${fix}" names an operation that does not exist`);
  }

  return {
    description,
    operations,
    verify(method, url, response) {
      if (
        String(response.headers['content-type']).startsWith('application/problem+json') &&
        response.body !== ''
      )
        verifyFix(response.json());
      const path = url.split('?')[0] ?? url;
      const operation = patterns[method]?.find(({ pattern }) => pattern.test(path))?.operation;
      if (!operation) return;
      const name = `${operation.operationId} ${response.statusCode}`;
      const documented = operation.responses[response.statusCode];
      if (!documented) throw new Error(`${name} is not in the description: ${response.body}`);
      const type = String(response.headers['content-type'] ?? '').split(';')[0] ?? '';
      const schema = documented.content?.[type]?.schema;
      if (!schema) {
        if (response.body === '') return;
        throw new Error(`${name} returned ${type}, which is not in the description`);
      }
      const validate = validatorOf(schema);
      if (!validate(/^text\/|xml$/.test(type) ? response.body : response.json()))
        throw new Error(`${name} ${ajv.errorsText(validate.errors)}: ${response.body}`);
    },
  };
}

/**
 * The document leaves answers open for later versions. This version answers with no other fields and values than those it
 * documents.
 */
export function closed<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(closed) as Value;
  const members = Object.entries(value).map(([name, member]) => [name, closed(member)]);
  const schema = Object.fromEntries(members);
  if ('x-known-values' in value) schema.enum = value['x-known-values'];
  const isClosable = 'properties' in value && 'type' in value && !('additionalProperties' in value);
  return isClosable ? { ...schema, additionalProperties: false } : schema;
}

/** Tests store events with data of their own; `test/guards/events.api.test.ts` checks the data of real ones. */
const withAnyEventData = (description: Description): Description => ({
  ...description,
  components: {
    ...description.components,
    schemas: {
      ...description.components.schemas,
      Event: {
        type: 'object',
        required: ['id', 'type', 'timestamp', 'org_id', 'env_id', 'data'],
        additionalProperties: false,
        properties: {
          id: { type: 'string' },
          type: { $ref: '#/components/schemas/EventType' },
          timestamp: { type: 'string', format: 'date-time' },
          org_id: { type: 'string' },
          env_id: { type: 'string' },
          data: { type: 'object' },
          redacted: { const: true },
        },
      },
    },
  },
});

/** Common parameters are defined once and referred to. */
const resolveParameters = (parameters: Parameter[], { components }: Description): Parameter[] =>
  parameters.map((parameter) => components.parameters[parameter.$ref?.split('/').at(-1) ?? ''] ?? parameter);

/** Error responses are defined once and referred to. */
function resolveResponses(
  responses: Operation['responses'],
  { components }: Description,
): Operation['responses'] {
  return Object.fromEntries(
    Object.entries(responses).map(([status, response]) => {
      const name = response.$ref?.split('/').at(-1);
      return [status, name === undefined ? response : (components.responses[name] ?? response)];
    }),
  );
}

function patternOf(template: string): RegExp {
  return new RegExp(`^${template.replace(/\{[^}]+\}/g, '[^/]+')}$`);
}
