import type { FastifyContextConfig, FastifyInstance } from 'fastify';
import type { Permission } from '../../domain/identity/permissions.ts';
import { notFound } from '../../platform/errors.ts';
import { runToolCall, type ToolCall } from '../plugins/tool-calls.ts';

export interface OperationInput {
  /** Values of the path parameters. */
  params?: Record<string, string>;
  query?: Record<string, string | number | boolean | undefined>;
  body?: object;
  idempotencyKey?: string | undefined;
  /**
   * Without an `idempotencyKey`, derive one from the arguments: hosts repeat calls that got no answer, so the same call within
   * ten minutes is a retry.
   */
  derivesKey?: true;
}

export interface OperationResult {
  status: number;
  /** The resource, or the problem document. Empty for 204. */
  body: Record<string, unknown>;
  isReplayed: boolean;
  retryAfterSeconds?: number;
}

/** The operations of the API, for tools. */
export interface Operations {
  /** Whether a credential with these permissions may call the operation. */
  isPermitted(operationId: string, permissions: ReadonlySet<Permission>): boolean;
  /** The method and path: `POST /api/v1/inboxes/:inboxId/messages`. */
  describe(operationId: string): string;
  /**
   * Calls an operation for a tool, as a request inside this process: with the credential of the tool call, and with
   * everything that the operation does for a client of the API.
   */
  call(operationId: string, input: OperationInput, call: ToolCall): Promise<OperationResult>;
}

interface Operation {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  url: string;
  config: FastifyContextConfig;
}

/** What the operation needs to know of the request to `/mcp`: credential, environment and client. */
const PASSED_HEADERS = ['authorization', 'x-env-id', 'x-org-id', 'x-request-id', 'user-agent'];
const PATH_VALUE = /^[\w-]{1,128}$/;

/** Collects the operations. Install before the routes. */
export function collectOperations(app: FastifyInstance): Operations {
  const operations = new Map<string, Operation>();
  app.addHook('onRoute', ({ method, url, schema, config }) => {
    const id = schema?.operationId;
    if (id === undefined || method === 'HEAD' || operations.has(id)) return;
    operations.set(id, { method: method as Operation['method'], url, config: config ?? {} });
  });

  function find(id: string): Operation {
    const operation = operations.get(id);
    if (!operation) throw new Error(`There is no operation ${id}`);
    return operation;
  }

  return {
    isPermitted(id, permissions) {
      const { permission, alsoRequires, credential } = find(id).config;
      if (permission === undefined) return credential === 'any';
      return permissions.has(permission) && (alsoRequires === undefined || permissions.has(alsoRequires));
    },
    describe(id) {
      const { method, url } = find(id);
      return `${method} ${url}`;
    },
    async call(id, { params = {}, query = {}, body, idempotencyKey }, call) {
      const { method, url } = find(id);
      const { headers, ip } = call.request;
      const passed = PASSED_HEADERS.flatMap((name) => (headers[name] ? [[name, String(headers[name])]] : []));
      const response = await runToolCall(call, () =>
        app.inject({
          method,
          url: `${fillPath(url, params)}${queryOf(query)}`,
          remoteAddress: ip,
          headers: {
            ...Object.fromEntries(passed),
            ...(body ? { 'content-type': 'application/json' } : {}),
            ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
          },
          ...(body ? { payload: JSON.stringify(body) } : {}),
        }),
      );
      const retryAfter = Number(response.headers['retry-after']);
      return {
        status: response.statusCode,
        body: response.payload === '' ? {} : (response.json() as Record<string, unknown>),
        isReplayed: response.headers['idempotent-replayed'] === 'true',
        ...(retryAfter > 0 ? { retryAfterSeconds: retryAfter } : {}),
      };
    },
  };
}

/** @throws AppError `not_found` for a value that would change the path. */
function fillPath(url: string, params: Record<string, string>): string {
  return url.replace(/:(\w+)/g, (_, name: string) => {
    const value = params[name] ?? '';
    if (!PATH_VALUE.test(value)) throw notFound('resource', value.slice(0, 64));
    return value;
  });
}

function queryOf(query: NonNullable<OperationInput['query']>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  if (given.length === 0) return '';
  return `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}
