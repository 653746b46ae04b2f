import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import { errors, type Provider } from 'oidc-provider';
import { Type } from 'typebox';
import { AUTHORIZATION_PATHS } from '../../domain/connections/authorization-server.ts';
import { readClientMetadata } from '../../domain/connections/client-metadata.ts';
import { resourceMetadata, serverMetadata } from './authorization-metadata.ts';
import { callProvider, sendAnswer } from './call-provider.ts';

const BODY_LIMIT_BYTES = 16 * 1024;
const METADATA_SECONDS = 300;
const RESOURCE_METADATA = '/.well-known/oauth-protected-resource';
const SERVER_METADATA = '/.well-known/oauth-authorization-server';

/**
 * The authorization server for programs: its metadata, registration, tokens. Errors are those of OAuth (RFC 6749 section 5.2).
 * Nothing here reads a cookie, so that programs in a browser may read what it answers.
 */
export const authorizationRoutes =
  ({ authorizationServer: provider }: { authorizationServer: Provider }): FastifyPluginCallback =>
  (app, _options, done) => {
    const { issuer } = provider;
    app.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: BODY_LIMIT_BYTES },
      (_request, body, parsed) => parsed(null, body),
    );
    app.addHook('onRequest', async (_request, reply) => {
      reply.header('access-control-allow-origin', '*');
    });

    const publish = (url: string, operationId: string, document: object) => {
      app.get(
        url,
        { config: { public: true }, schema: { hide: true, operationId } },
        async (_request, reply) =>
          reply.header('cache-control', `public, max-age=${METADATA_SECONDS}`).send(document),
      );
      allowOrigins(app, url, operationId);
    };
    publish(RESOURCE_METADATA, 'oauth.resource', resourceMetadata(issuer));
    publish(`${RESOURCE_METADATA}/mcp`, 'oauth.mcpResource', resourceMetadata(issuer));
    publish(SERVER_METADATA, 'oauth.server', serverMetadata(issuer));

    app.post(
      AUTHORIZATION_PATHS.registration,
      {
        config: { public: true },
        bodyLimit: BODY_LIMIT_BYTES,
        schema: {
          hide: true,
          operationId: 'oauth.register',
          // Members that the service does not know are ignored (RFC 7591 section 2).
          body: Type.Record(Type.String(), Type.Unknown(), { maxProperties: 100 }),
        },
      },
      async (request, reply) => {
        try {
          const metadata = readClientMetadata(requireObject(request.body));
          const headers = { ...request.headers, 'content-type': 'application/json' };
          const answer = await callProvider(provider, asked(request, headers), JSON.stringify(metadata));
          return sendAnswer(reply, answer);
        } catch (error) {
          return sendRefusal(reply, error);
        }
      },
    );
    allowOrigins(app, AUTHORIZATION_PATHS.registration, 'oauth.register');

    for (const [url, operationId] of [
      [AUTHORIZATION_PATHS.token, 'oauth.token'],
      [AUTHORIZATION_PATHS.revocation, 'oauth.revoke'],
    ] as const) {
      app.post(
        url,
        {
          config: { public: true },
          schema: { hide: true, operationId, body: Type.String({ maxLength: BODY_LIMIT_BYTES }) },
        },
        async (request, reply) => sendAnswer(reply, await callProvider(provider, request, bodyOf(request))),
      );
      allowOrigins(app, url, operationId);
    }
    done();
  };

/** Answers the questions that browsers ask before a request from another origin. */
function allowOrigins(app: Parameters<FastifyPluginCallback>[0], url: string, operationId: string): void {
  app.options(
    url,
    { config: { public: true }, schema: { hide: true, operationId: `${operationId}Preflight` } },
    async (_request, reply) =>
      reply
        .code(204)
        .headers({
          'access-control-allow-methods': 'GET, POST',
          'access-control-allow-headers': 'authorization, content-type, mcp-protocol-version',
          'access-control-max-age': String(METADATA_SECONDS),
        })
        .send(),
  );
}

const asked = ({ method, url, ip }: FastifyRequest, headers: FastifyRequest['headers']) => ({
  method,
  url,
  ip,
  headers,
});

const bodyOf = ({ body }: FastifyRequest): string => (typeof body === 'string' ? body : '');

function requireObject(body: unknown): Record<string, unknown> {
  if (typeof body === 'object' && body !== null && !Array.isArray(body))
    return body as Record<string, unknown>;
  throw new errors.InvalidClientMetadata('the body must be a JSON object');
}

function sendRefusal(reply: FastifyReply, error: unknown): FastifyReply {
  if (!(error instanceof errors.OIDCProviderError)) throw error;
  const { status, error: code, error_description } = error;
  return reply.code(status).send({ error: code, error_description });
}
