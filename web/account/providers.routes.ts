import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { setOauthCookie } from '../../api/oauth/oauth-cookie.ts';
import type { Cookies } from '../../api/plugins/cookies.ts';
import { strictObject, text } from '../../api/schemas.ts';
import type { AppError } from '../../platform/errors.ts';
import { type AccountPageDependencies, showAccount } from './account-page.ts';

export interface ProviderPageDependencies extends AccountPageDependencies {
  cookies: Cookies;
}

const ProviderForm = strictObject({ provider: text(40) });

/** Linking OAuth providers with the account. Both need a recent sign-in. */
export const providerPages =
  (dependencies: ProviderPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, cookies, oauth, oauthLinks } = dependencies;

    const show = (request: FastifyRequest, reply: FastifyReply, problem: AppError) =>
      showAccount(dependencies, request, reply, problem);

    pages.form(app, '/account/providers/link', {
      config: { person: 'fresh' },
      schema: { operationId: 'pages.linkProvider', body: ProviderForm },
      work: ({ person, body }) =>
        oauth.start(body.provider, { redirectTo: '/account?notice=provider-linked', person }),
      show,
      done(request, reply, { redirectUrl, browserToken }) {
        const { provider } = request.body;
        setOauthCookie(reply, cookies, browserToken);
        const name = oauth.providers().find(({ id }) => id === provider)?.name ?? provider;
        return pages.leave(request, reply, { url: redirectUrl, name });
      },
    });

    pages.form(app, '/account/providers/unlink', {
      config: { person: 'fresh' },
      schema: { operationId: 'pages.unlinkProvider', body: ProviderForm },
      work: ({ person, body }) => oauthLinks.unlink(person, body.provider),
      show,
      done: (_request, reply) => pages.seeOther(reply, '/account', 'provider-unlinked'),
    });
    done();
  };
