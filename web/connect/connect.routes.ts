import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errors, type Provider } from 'oidc-provider';
import { Type } from 'typebox';
import {
  callProvider,
  createExchange,
  type IncomingCall,
  sendAnswer,
} from '../../api/connections/call-provider.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { readAuthorizationQuery } from '../../domain/connections/authorization-query.ts';
import { AUTHORIZATION_PATHS } from '../../domain/connections/authorization-server.ts';
import { COMMAND_LINE_CLIENT_ID } from '../../domain/connections/command-line-client.ts';
import {
  CONNECTION_LIFETIMES,
  type ConsentService,
  describeRedirect,
} from '../../domain/connections/consent.service.ts';
import { CONNECTION_PERMISSIONS, type Permission } from '../../domain/identity/permissions.ts';
import { AppError } from '../../platform/errors.ts';
import { OrganizationQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';

export interface ConnectPageDependencies {
  pages: Pages;
  consents: ConsentService;
  authorizationServer: Provider;
}

const UidParams = strictObject({ uid: text(64, { pattern: '^[\\w-]+$' }) });
const OnePermission = enumOf(CONNECTION_PERMISSIONS);
const DEFAULT_LIFETIME = 90;
/** Every member may connect a client, to what their role allows. Staff in the place of a member may not. */
const CONSENT = { permission: 'inboxes:read', impersonation: 'never' } as const;

/** What a person reads beside the name of a permission. */
export const PERMISSION_TEXTS: Partial<Record<Permission, string>> = {
  'inboxes:read': 'See inboxes and their addresses',
  'inboxes:write': 'Create, change and delete inboxes',
  'drafts:read': 'Read drafts',
  'drafts:write': 'Write and delete drafts',
  'messages:read': 'Read messages and attachments',
  'messages:write': 'Label and delete messages',
  'messages:send': 'Send messages, reply and forward',
  'threads:read': 'Read conversations',
  'webhooks:read': 'See where events are delivered',
  'events:read': 'Follow events',
  'metrics:read': 'See deliverability',
  'suppressions:read': 'See addresses that get no mail',
  'lists:read': 'See allow and block lists',
  'domains:read': 'See domains',
  'usage:read': 'See usage and the list of calls',
};

/** A request for authorization, as the person sees it. */
interface AskedConsent {
  clientId: string;
  clientName: string;
  /** The site that the client's metadata document proves; null for a client that only says who it is. */
  provenSite: string | null;
  redirectUri: string;
  requested: Permission[];
}

/** Where a client sends the person's browser, and the page on which the person decides. */
export const connectPages =
  ({
    pages,
    consents,
    authorizationServer: provider,
  }: ConnectPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const answer = async (reply: FastifyReply, call: IncomingCall) => {
      const answered = await callProvider(provider, call);
      if (answered.status >= 400) throw refusalOf(answered);
      return sendAnswer(reply, answered);
    };
    app.get(
      AUTHORIZATION_PATHS.authorization,
      { config: { public: true }, schema: { operationId: 'pages.authorize' } },
      async ({ method, url, headers, ip }, reply) => {
        const query = readAuthorizationQuery(new URL(url, provider.issuer).searchParams);
        return answer(reply, { method, headers, ip, url: `${AUTHORIZATION_PATHS.authorization}?${query}` });
      },
    );
    app.get(
      `${AUTHORIZATION_PATHS.authorization}/:uid`,
      { config: { public: true }, schema: { operationId: 'pages.resumeAuthorization', params: UidParams } },
      async (request, reply) => answer(reply, request),
    );

    async function show(
      request: FastifyRequest,
      reply: FastifyReply,
      { uid, problem, chosen }: { uid: string; problem?: AppError; chosen?: readonly string[] },
    ) {
      const asked = await findAsked(provider, request, uid);
      const offer = await consents.offer(request.scope, asked.requested);
      return pages.send(request, reply, {
        template: 'connect/connect',
        title: 'Connect a program',
        problem,
        data: {
          ...offer,
          uid,
          clientName: asked.clientName || 'A program without a name',
          provenSite: asked.provenSite,
          isCommandLine: asked.clientId === COMMAND_LINE_CLIENT_ID,
          redirectTo: describeRedirect(asked.redirectUri),
          isLocal: !asked.redirectUri.startsWith('https:'),
          lifetimes: CONNECTION_LIFETIMES,
          defaultLifetime: DEFAULT_LIFETIME,
          describe: (name: Permission) => PERMISSION_TEXTS[name] ?? name,
          isChosen: (name: string) => chosen === undefined || chosen.includes(name),
        },
      });
    }

    app.get(
      `${AUTHORIZATION_PATHS.consent}/:uid`,
      {
        config: CONSENT,
        schema: { operationId: 'pages.connect', params: UidParams, querystring: OrganizationQuery },
      },
      async (request, reply) => show(request, reply, { uid: request.params.uid }),
    );

    pages.form(app, `${AUTHORIZATION_PATHS.consent}/:uid`, {
      config: CONSENT,
      schema: {
        operationId: 'pages.decideConnection',
        params: UidParams,
        body: strictObject({
          decision: enumOf(['allow', 'deny']),
          permissions: Type.Optional(
            // A form sends a single checked box as a text.
            Type.Union([
              OnePermission,
              Type.Array(OnePermission, { maxItems: CONNECTION_PERMISSIONS.length }),
            ]),
          ),
          environment_id: Type.Optional(text(64)),
          inbox: Type.Optional(text(320)),
          days: Type.Optional(enumOf(CONNECTION_LIFETIMES.map(String))),
        }),
      },
      async work(request) {
        const { uid } = request.params;
        const { decision, permissions = [], environment_id, inbox, days } = request.body;
        const asked = await findAsked(provider, request, uid);
        if (decision === 'deny') return { asked, result: DENIED };
        const grantId = await consents.grant(request.scope, {
          ...asked,
          requestId: uid,
          permissions: [permissions].flat(),
          environmentId: environment_id || undefined,
          inbox: inbox?.trim() || undefined,
          lifetimeDays: Number(days ?? DEFAULT_LIFETIME),
        });
        const accountId = request.scope.actor.id;
        return { asked, result: { login: { accountId, remember: false }, consent: { grantId } } };
      },
      show: (request, reply, problem) =>
        show(request, reply, {
          uid: request.params.uid,
          problem,
          chosen: [request.body.permissions ?? []].flat(),
        }),
      done: finish,
    });

    /** Answers with a page that navigates on: `form-action` in the CSP also covers redirects after a form. */
    async function finish(
      incoming: FastifyRequest,
      reply: FastifyReply,
      { asked, result }: { asked: AskedConsent; result: object },
    ) {
      const { request, response } = createExchange(provider, incoming);
      const { pathname } = new URL(await provider.interactionResult(request, response, result));
      return pages.leave(incoming, reply, { url: pathname, name: asked.clientName || 'the program' });
    }
    done();
  };

const DENIED = { error: 'access_denied', error_description: 'The person denied the request.' };

/** @throws AppError `not_found` for a request that is unknown, expired, answered, or of another browser. */
async function findAsked(provider: Provider, incoming: FastifyRequest, uid: string): Promise<AskedConsent> {
  const { request, response } = createExchange(provider, incoming);
  const interaction = await unlessRefused(provider.interactionDetails(request, response));
  const { client_id, redirect_uri, scope } = interaction?.params ?? {};
  // The client or its metadata document may have disappeared in the meantime.
  const client =
    interaction?.uid === uid ? await unlessRefused(provider.Client.find(String(client_id))) : undefined;
  if (!client)
    throw new AppError('not_found', {
      detail: 'The request is no longer valid, or was made in another browser.',
      fix: 'Go back to the program that wants to connect, and start again.',
    });
  const names = String(scope).split(' ');
  return {
    clientId: client.clientId,
    clientName: client.clientName ?? '',
    provenSite: client.clientId.startsWith('https://') ? new URL(client.clientId).host : null,
    redirectUri: String(redirect_uri),
    requested: CONNECTION_PERMISSIONS.filter((name) => names.includes(name)),
  };
}

/** Undefined for what the authorization server refuses. */
const unlessRefused = <Value>(work: Promise<Value>): Promise<Value | undefined> =>
  work.catch((error: unknown) => {
    if (error instanceof errors.OIDCProviderError) return undefined;
    throw error;
  });

/** What the authorization server refuses without sending the browser back, because it does not trust the client's address. */
function refusalOf({ body }: { body: string }): AppError {
  const { error_description: detail = 'The request is not valid.' } = JSON.parse(body) as {
    error_description?: string;
  };
  return new AppError('validation_error', {
    detail: `The program that sent you here made a mistake: ${detail}.`,
    fix: 'Go back to the program, and start again. If that does not help, tell its makers.',
  });
}
