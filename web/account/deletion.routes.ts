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
      { token = '', problem }: { token?: string; problem?: AppError },
    ) =>
      pages.send(request, reply, {
        template: 'sign-in/recover',
        title: 'Recover your account',
        data: { token },
        problem,
      });
    const showAgain = (request: FastifyRequest, reply: FastifyReply, problem: AppError) =>
      showAccount(dependencies, request, reply, problem);

    app.get(
      '/recover',
      { config: { public: true }, schema: { operationId: 'pages.recover', querystring: TokenQuery } },
      async (request, reply) => showRecovery(request, reply, request.query),
    );

    pages.form(app, '/recover', {
      config: { public: true },
      schema: {
        operationId: 'pages.submitRecover',
        // Either the token of the email, or address and password.
        body: strictObject({
          token: Type.Optional(Token),
          email: Type.Optional(text(254)),
          password: Type.Optional(text(256)),
        }),
      },
      work: async (request) => {
        const { token, email = '', password = '' } = request.body;
        return accountDeletions.recover(
          token === undefined ? { email, password } : { token },
          browserClientOf(request, cookies),
        );
      },
      // A used token cannot be sent again: the form for address and password is left.
      show: (request, reply, problem) => showRecovery(request, reply, { problem }),
      done: (_request, reply, { signIn }) => browserSignIn.finish(reply, signIn, RECOVERED_ACCOUNT),
    });

    pages.form(app, '/account/delete', {
      config: { person: 'full' },
      schema: {
        operationId: 'pages.deleteAccount',
        body: strictObject({ current_password: Type.Optional(text(256)) }),
      },
      work: ({ person, body }) => accountDeletions.delete(person, body.current_password || undefined),
      show: showAgain,
      done(_request, reply) {
        browserSession.end(reply);
        return pages.seeOther(reply, '/login', 'account-deleted');
      },
    });

    pages.form(app, '/account/organizations/recover', {
      config: { person: 'fresh' },
      schema: {
        operationId: 'pages.recoverOrganization',
        body: strictObject({ organization_id: text(64) }),
      },
      work: ({ person, body }) => organizationDeletions.recover(person, body.organization_id),
      show: showAgain,
      done: (_request, reply, { organizationId }) =>
        pages.seeOther(reply, `/settings?org=${organizationId}`, 'organization-recovered'),
    });
    done();
  };
