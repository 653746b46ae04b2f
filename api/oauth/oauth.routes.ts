import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { OauthOutcome, OauthService } from '../../domain/oauth/oauth.service.ts';
import type { OauthLinkService } from '../../domain/oauth/oauth-link.service.ts';
import type { AccountService } from '../../domain/people/account.service.ts';
import { presentSignIn } from '../people/auth.schemas.ts';
import type { BrowserSignIn } from '../people/browser-sign-in.ts';
import { browserClientOf } from '../people/client-of.ts';
import { localPath } from '../people/local-path.ts';
import { wantsJson } from '../people/wants-json.ts';
import type { BrowserSession } from '../plugins/browser-session.ts';
import type { Cookies } from '../plugins/cookies.ts';
import { changeProblems, NoContent, postProblems, problems, ref, strictObject, text } from '../schemas.ts';
import {
  LinkOauthProvider,
  OauthFinished,
  OauthLinkList,
  OauthProviderList,
  OauthRedirect,
  ProviderParams,
  presentOauthLink,
  redirectTo,
} from './oauth.schemas.ts';
import { OAUTH_COOKIE, setOauthCookie } from './oauth-cookie.ts';
import { showFailuresOnPages } from './oauth-failures.ts';

export interface OauthRouteDependencies {
  oauth: OauthService;
  oauthLinks: OauthLinkService;
  accounts: AccountService;
  cookies: Cookies;
  browserSession: BrowserSession;
  browserSignIn: BrowserSignIn;
}

/** Providers add parameters of their own. */
const CallbackQuery = Type.Object(
  {},
  {
    additionalProperties: { anyOf: [text(8_192), Type.Array(text(8_192), { maxItems: 10 })] },
    maxProperties: 50,
  },
);

export const oauthRoutes =
  (dependencies: OauthRouteDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { oauth, oauthLinks, cookies } = dependencies;

    app.get(
      '/auth/oauth-providers',
      {
        config: { public: true },
        schema: {
          operationId: 'oauth.listProviders',
          summary: 'List the OAuth providers that people may sign in with',
          tags: ['Sign-in'],
          response: { 200: OauthProviderList, ...problems() },
        },
      },
      async () => ({
        data: oauth
          .providers()
          .map(({ id, name }) => ({ object: 'oauth_provider' as const, provider: id, name })),
      }),
    );

    app.get(
      '/auth/oauth/:provider',
      {
        config: { public: true },
        schema: {
          operationId: 'oauth.start',
          summary: 'Start signing in with an OAuth provider',
          description:
            'Redirects browsers to the provider; answers Accept: application/json with the URL. Only the browser that receives the cookie of this response can finish.',
          tags: ['Sign-in'],
          params: ProviderParams,
          querystring: strictObject({ redirect_to: redirectTo }),
          response: {
            200: ref(OauthRedirect),
            302: { ...NoContent, description: 'To the provider.' },
            ...problems(),
          },
        },
      },
      async (request, reply) => {
        const started = await oauth.start(request.params.provider, {
          redirectTo: localPath(request.query.redirect_to),
          person: null,
        });
        setOauthCookie(reply, cookies, started.browserToken);
        if (wantsJson(request)) return { object: 'redirect' as const, redirect_url: started.redirectUrl };
        return reply.redirect(started.redirectUrl, 302);
      },
    );

    app.register(callbackRoute(dependencies));

    app.get(
      '/user/me/oauth-providers',
      {
        config: { person: 'full' },
        schema: {
          operationId: 'user.listOauthProviders',
          summary: 'List the OAuth providers linked with your account',
          tags: ['User'],
          response: { 200: OauthLinkList, ...problems() },
        },
      },
      async ({ person }) => ({ data: (await oauthLinks.list(person)).map(presentOauthLink) }),
    );

    app.post(
      '/user/me/oauth-providers/:provider/link',
      {
        config: { person: 'fresh', bodyMayBeEmpty: true },
        schema: {
          operationId: 'user.linkOauthProvider',
          summary: 'Begin to link an OAuth provider with your account',
          description:
            'Requires a sign-in within the last ten minutes. The link is made when the browser that received this response comes back from the provider.',
          tags: ['User'],
          params: ProviderParams,
          body: ref(LinkOauthProvider),
          response: { 200: ref(OauthRedirect), ...postProblems() },
        },
      },
      async ({ person, params, body }, reply) => {
        const started = await oauth.start(params.provider, {
          redirectTo: localPath(body.redirect_to),
          person,
        });
        setOauthCookie(reply, cookies, started.browserToken);
        return { object: 'redirect' as const, redirect_url: started.redirectUrl };
      },
    );

    app.delete(
      '/user/me/oauth-providers/:provider',
      {
        config: { person: 'fresh' },
        schema: {
          operationId: 'user.unlinkOauthProvider',
          summary: 'Unlink an OAuth provider from your account',
          description:
            'Requires a sign-in within the last ten minutes. The last way to sign in cannot be removed.',
          tags: ['User'],
          params: ProviderParams,
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async ({ person, params }, reply) => {
        await oauthLinks.unlink(person, params.provider);
        return reply.code(204).send(null);
      },
    );
    done();
  };

/** A plugin of its own, because its errors are pages in a browser. */
const callbackRoute =
  (dependencies: OauthRouteDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { oauth, cookies, browserSession } = dependencies;
    showFailuresOnPages(app, browserSession);
    app.get(
      '/auth/oauth/:provider/callback',
      {
        config: { public: true },
        schema: {
          operationId: 'oauth.finish',
          summary: 'Finish what an OAuth provider was asked for',
          description:
            'Providers send browsers here. Browsers get a session cookie and go on to the page where they began; Accept: application/json gets the session.',
          tags: ['Sign-in'],
          params: ProviderParams,
          querystring: CallbackQuery,
          response: {
            200: OauthFinished,
            303: { ...NoContent, description: 'To a page of this service.' },
            ...problems(409, 422),
          },
        },
      },
      async (request, reply) => {
        const outcome = await oauth.finish(
          request.params.provider,
          {
            // As they were sent: a parameter that occurs twice is refused.
            parameters: new URL(request.url, 'http://localhost').searchParams,
            browserToken: cookies.read(request, OAUTH_COOKIE),
          },
          browserClientOf(request, cookies),
        );
        cookies.clear(reply, OAUTH_COOKIE);
        return answer(request, reply, outcome, dependencies);
      },
    );
    done();
  };

async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  outcome: OauthOutcome,
  { accounts, browserSignIn }: Pick<OauthRouteDependencies, 'accounts' | 'browserSignIn'>,
) {
  if (outcome.kind === 'linked') {
    if (wantsJson(request))
      return { object: 'oauth_linked' as const, linked: true as const, provider: outcome.provider };
    return reply.redirect(outcome.redirectTo, 303);
  }
  const { userId, signIn } = outcome.signedIn;
  if (wantsJson(request)) {
    reply.rememberDevice(signIn);
    return presentSignIn(signIn, await accounts.get(userId));
  }
  return browserSignIn.finish(reply, signIn, outcome.redirectTo);
}
