import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import { errors, type Provider } from 'oidc-provider';
import { Type } from 'typebox';
import { AUTHORIZATION_PATHS } from '../../domain/connections/authorization-server.ts';
import { readClientMetadata } from '../../domain/connections/client-metadata.ts';
import type { AppError } from '../../platform/errors.ts';
import { readFailure } from '../plugins/error-responses.ts';
import { sendFailure } from '../plugins/problem.ts';
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
    app.setErrorHandler(sendOauthError);

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
        const metadata = readClientMetadata(request.body as Record<string, unknown>);
        const headers = { ...request.headers, 'content-type': 'application/json' };
        const answer = await callProvider(provider, asked(request, headers), JSON.stringify(metadata));
        return sendAnswer(reply, answer);
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
          bodyLimit: BODY_LIMIT_BYTES,
          schema: { hide: true, operationId, body: Type.String() },
        },
        async (request, reply) =>
          sendAnswer(reply, await callProvider(provider, request, request.body as string)),
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

/** The error codes of OAuth, which programs know (RFC 6749 section 5.2, RFC 7591 section 3.2.2), with what a person can do. */
function sendOauthError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  if (error instanceof errors.OIDCProviderError) {
    reply.code(error.status).send({ error: error.error, error_description: error.error_description });
    return;
  }
  const problem = readFailure(error, request);
  reply.header('cache-control', 'no-store');
  sendFailure(request, reply, problem, {
    type: 'application/json; charset=utf-8',
    document: { error: codeOf(problem, request), error_description: describe(problem) },
  });
}

function codeOf({ status }: AppError, { url }: FastifyRequest): string {
  if (status === 429 || status === 503) return 'temporarily_unavailable';
  if (status >= 500) return 'server_error';
  return url === AUTHORIZATION_PATHS.registration ? 'invalid_client_metadata' : 'invalid_request';
}

/** In the characters that RFC 6749 allows. */
const describe = ({ detail, fix }: AppError): string =>
  `${detail} ${fix}`.replaceAll('"', "'").replace(/[^\x20-\x5b\x5d-\x7e]/g, '?');
