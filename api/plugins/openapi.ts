import swagger from '@fastify/swagger';
import type { FastifyContextConfig, FastifyInstance, FastifySchema } from 'fastify';
import type { TSchema } from 'typebox';
import { classifyOperation } from '../../domain/impersonation/impersonation-access.ts';
import { describeWebhooks } from '../webhooks/openapi-webhooks.ts';
import { selectForAgents } from './agent-document.ts';
import { ALIAS, completeDocument } from './openapi-document.ts';
import { ERRORS_PAGE } from './problem.ts';
import { createStaticDocument } from './static-document.ts';

export interface OpenApiOptions {
  publicUrl: string;
  version: string;
  /** Registered by `$id`. They become the document's components. */
  schemas: TSchema[];
}

/** Serves OpenAPI 3.1 at `/openapi.json`, generated from the routes' schemas. */
export async function installOpenApi(
  app: FastifyInstance,
  { publicUrl, version, schemas }: OpenApiOptions,
): Promise<void> {
  for (const schema of schemas) app.addSchema(schema);
  const optionalBodies = new Set<unknown>();
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Agent email service',
        version,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
        description: `Email inboxes for software agents. Errors are RFC 9457 problem documents; their codes are explained at ${publicUrl}${ERRORS_PAGE}.`,
      },
      servers: [{ url: publicUrl }],
      components: {
        securitySchemes: {
          apiKey: { type: 'http', scheme: 'bearer', bearerFormat: 'ask_…' },
          session: { type: 'http', scheme: 'bearer', bearerFormat: 'sst_…' },
        },
      },
      security: [{ apiKey: [] }, { session: [] }],
      webhooks: describeWebhooks(),
    },
    transform({ schema, url, route }) {
      if (route.config?.bodyMayBeEmpty) optionalBodies.add(schema.operationId);
      const described = acceptsCommonHeaders(url, route.config)
        ? withCommonHeaders(schema, route.method === 'POST')
        : schema;
      const security = securityOf(route.config);
      return {
        url,
        schema: {
          ...aliasOf(schema.operationId),
          ...withMinimalResponse(withResponseDescriptions(described), {
            config: route.config,
            method: String(route.method),
          }),
          ...security,
        },
      };
    },
    // The plugin marks every body as required.
    transformObject(document) {
      const { paths = {} } = 'openapiObject' in document ? document.openapiObject : {};
      for (const { post } of Object.values(paths).filter((path) => path !== undefined))
        if (post?.requestBody && 'content' in post.requestBody && optionalBodies.has(post.operationId))
          post.requestBody.required = false;
      return 'openapiObject' in document ? completeDocument(document.openapiObject) : document.swaggerObject;
    },
    refResolver: { buildLocalReference: (json, _base, _fragment, index) => componentName(json.$id, index) },
  });
  app.get(
    '/openapi.json',
    { config: { public: true }, schema: { hide: true, operationId: 'docs.openapi' } },
    createStaticDocument(() => app.swagger()),
  );
  app.get(
    '/openapi/agent.json',
    { config: { public: true }, schema: { hide: true, operationId: 'docs.agentOpenapi' } },
    createStaticDocument(() => selectForAgents(app.swagger() as never)),
  );
}

const ORGANIZATION_HEADER = {
  'x-org-id': {
    type: 'string',
    maxLength: 128,
    description: 'Selects the organization, for a person who belongs to several.',
  },
};
const ENVIRONMENT_HEADER = {
  'x-env-id': {
    type: 'string',
    maxLength: 128,
    description:
      'Selects an environment, for a credential that is not bound to one. Default: that of the resource in the path, or `production`.',
  },
};
const IDEMPOTENCY_HEADER = {
  'idempotency-key': {
    type: 'string',
    minLength: 1,
    maxLength: 255,
    description:
      'Repeating the request with the same key within 24 hours returns the same response without changes.',
  },
};

/** Routes that require a credential accept the common headers, including `/organizations` and `/billing`; provider webhooks do not. */
function acceptsCommonHeaders(url: string, config: FastifyContextConfig | undefined): boolean {
  return (
    /^\/(?:api|organizations|billing)\//.test(url) && !config?.public && !config?.person && !config?.staff
  );
}

/** Documents the headers that plugins read on every API route. */
function withCommonHeaders(schema: FastifySchema, isPost: boolean): FastifySchema {
  const ownHeaders = (schema.headers as { properties?: object } | undefined)?.properties;
  const properties = {
    ...ownHeaders,
    ...ORGANIZATION_HEADER,
    ...ENVIRONMENT_HEADER,
    ...(isPost ? IDEMPOTENCY_HEADER : {}),
  };
  return { ...schema, headers: { type: 'object', properties } };
}

/** Adds a description to responses without one, from the name of their schema: `The webhook endpoint.` */
function withResponseDescriptions(schema: FastifySchema): FastifySchema {
  if (!schema?.response) return schema;
  const response = Object.fromEntries(
    Object.entries(schema.response as Record<string, ResponseSchema>).map(([status, responseSchema]) => [
      status,
      responseSchema.description || !responseSchema.$ref
        ? responseSchema
        : { ...responseSchema, description: describeResponse(responseSchema.$ref) },
    ]),
  );
  return { ...schema, response };
}

/** Generated clients leave out operations with `x-alias-of`. */
function aliasOf(operationId: string | undefined): object {
  return operationId !== undefined && ALIAS.test(operationId)
    ? { 'x-alias-of': operationId.replace(ALIAS, '.') }
    : {};
}

/** Which credential an operation needs; undefined: an API key or a session, the default of the document. */
function securityOf(config: FastifyContextConfig | undefined): Pick<FastifySchema, 'security'> {
  if (config?.public) return { security: [] };
  return config?.person || config?.staff ? { security: [{ session: [] }] } : {};
}

/**
 * Documents the permission of an operation, what impersonations may do with it, and its response for a credential that may
 * not read the resource.
 */
function withMinimalResponse(
  schema: FastifySchema,
  { config, method }: { config?: FastifyContextConfig | undefined; method: string },
): FastifySchema {
  if (schema && config?.staff) return { ...schema, 'x-staff-role': config.staff } as FastifySchema;
  if (schema && config?.credential) return { ...schema, 'x-credential': config.credential } as FastifySchema;
  if (!schema || !config?.permission) return schema;
  const { permission, readPermission, minimalResponse, accepted } = config;
  const documented = {
    ...schema,
    'x-permission': permission,
    'x-impersonation': classifyOperation({
      permission,
      method,
      isForbidden: config.impersonation === 'never',
    }),
    ...(readPermission ? { 'x-read-permission': readPermission } : {}),
  };
  if (!minimalResponse) return documented;
  const note = `The full response requires ${readPermission}; without it only the minimal response is returned.`;
  const minimal = [minimalResponse, accepted?.minimalResponse];
  const response = Object.fromEntries(
    Object.entries((schema.response ?? {}) as Record<string, ResponseSchema>).map(([status, full]) => {
      const own = minimal.find((each) => each && `Minimal${full.$ref?.replace('#', '')}` === each.$id);
      return own
        ? [status, { description: full.description, anyOf: [{ $ref: full.$ref }, { $ref: `${own.$id}#` }] }]
        : [status, full];
    }),
  );
  return { ...documented, description: [schema.description, note].filter(Boolean).join(' '), response };
}

interface ResponseSchema {
  $ref?: string;
  description?: string;
}

function describeResponse(reference: string): string {
  const words = reference.replace('#', '').replace(/\B[A-Z]/g, (letter) => ` ${letter}`);
  return `The ${words.toLowerCase()}.`;
}

function componentName(id: unknown, index: number): string {
  return typeof id === 'string' ? id : `Schema${index}`;
}
