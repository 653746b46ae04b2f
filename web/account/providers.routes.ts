import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { setOauthCookie } from '../../api/oauth/oauth-cookie.ts';
import type { Cookies } from '../../api/plugins/cookies.ts';
import { strictObject, text } from '../../api/schemas.ts';
import { rejectionOf } from '../shell/pages.ts';
import { type AccountPageDependencies, finishAccountForm, showAccount } from './account-page.ts';

export interface ProviderPageDependencies extends AccountPageDependencies {
  cookies: Cookies;
}

const ProviderForm = strictObject({ provider: text(40) });

/** Linking OAuth providers with the account. Both need a recent sign-in. */
export const providerPages =
  (dependencies: ProviderPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, cookies, oauth, oauthLinks } = dependencies;

    app.post(
      '/account/providers/link',
      { config: { person: 'fresh' }, schema: { operationId: 'pages.linkProvider', body: ProviderForm } },
      async (request, reply) => {
        const { provider } = request.body;
        const starting = oauth.start(provider, {
          redirectTo: '/account?notice=provider-linked',
          person: request.person,
        });
        const problem = await rejectionOf(starting);
        if (problem) return showAccount(dependencies, request, reply, problem);
        const { redirectUrl, browserToken } = await starting;
        setOauthCookie(reply, cookies, browserToken);
        const name = oauth.providers().find(({ id }) => id === provider)?.name ?? provider;
        return pages.leave(request, reply, { url: redirectUrl, name });
      },
    );

    app.post(
      '/account/providers/unlink',
      { config: { person: 'fresh' }, schema: { operationId: 'pages.unlinkProvider', body: ProviderForm } },
      async (request, reply) => {
        const work = oauthLinks.unlink(request.person, request.body.provider);
        return finishAccountForm(dependencies, request, reply, { work, notice: 'provider-unlinked' });
      },
    );
    done();
  };
