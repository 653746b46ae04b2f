import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { BrowserSignIn } from '../../api/people/browser-sign-in.ts';
import { browserClientOf } from '../../api/people/client-of.ts';
import type { BrowserSession } from '../../api/plugins/browser-session.ts';
import type { Cookies } from '../../api/plugins/cookies.ts';
import { strictObject, text } from '../../api/schemas.ts';
import type { AccountDeletionService } from '../../domain/deletions/account-deletion.service.ts';
import type { OrganizationDeletionService } from '../../domain/deletions/organization-deletion.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { Token, TokenQuery } from '../shell/forms.ts';
import { rejectionOf } from '../shell/pages.ts';
import { type AccountPageDependencies, showAccount } from './account-page.ts';

export interface DeletionPageDependencies extends AccountPageDependencies {
  browserSignIn: BrowserSignIn;
  browserSession: BrowserSession;
  cookies: Cookies;
  accountDeletions: AccountDeletionService;
  organizationDeletions: OrganizationDeletionService;
}

const RECOVERED_ACCOUNT = '/account?notice=account-recovered';

/** Deletion and recovery of the account, and of an organization. */
export const deletionPages =
  (dependencies: DeletionPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, browserSignIn, browserSession, cookies, accountDeletions, organizationDeletions } =
      dependencies;

    const showRecovery = (
      request: FastifyRequest,
      reply: FastifyReply,
      { token = '', email = '', problem }: { token?: string; email?: string; problem?: AppError | undefined },
    ) =>
      pages.send(request, reply, {
        template: 'sign-in/recover',
        title: 'Recover your account',
        data: { token, email },
        problem,
      });

    app.get(
      '/recover',
      { config: { public: true }, schema: { operationId: 'pages.recover', querystring: TokenQuery } },
      async (request, reply) => showRecovery(request, reply, request.query),
    );

    app.post(
      '/recover',
      {
        config: { public: true },
        schema: {
          operationId: 'pages.submitRecover',
          body: Type.Union([
            strictObject({ token: Token }),
            strictObject({ email: text(254), password: text(256) }),
          ]),
        },
      },
      async (request, reply) => {
        const { body } = request;
        const recovering = accountDeletions.recover(body, browserClientOf(request, cookies));
        const problem = await rejectionOf(recovering);
        // A used token cannot be sent again: the form for address and password is left.
        if (problem) return showRecovery(request, reply, { ...('email' in body ? body : {}), problem });
        return browserSignIn.finish(reply, (await recovering).signIn, RECOVERED_ACCOUNT);
      },
    );

    app.post(
      '/account/delete',
      {
        config: { person: 'full' },
        schema: {
          operationId: 'pages.deleteAccount',
          body: strictObject({ current_password: Type.Optional(text(256)) }),
        },
      },
      async (request, reply) => {
        const password = request.body.current_password || undefined;
        const problem = await rejectionOf(accountDeletions.delete(request.person, password));
        if (problem) return showAccount(dependencies, request, reply, problem);
        browserSession.end(reply);
        return pages.seeOther(reply, '/login', 'account-deleted');
      },
    );

    app.post(
      '/account/organizations/recover',
      {
        config: { person: 'fresh' },
        schema: {
          operationId: 'pages.recoverOrganization',
          body: strictObject({ organization_id: text(64) }),
        },
      },
      async (request, reply) => {
        const recovering = organizationDeletions.recover(request.person, request.body.organization_id);
        const problem = await rejectionOf(recovering);
        if (problem) return showAccount(dependencies, request, reply, problem);
        const { organizationId } = await recovering;
        return pages.seeOther(reply, `/settings?org=${organizationId}`, 'organization-recovered');
      },
    );
    done();
  };
