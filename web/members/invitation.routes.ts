import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { BrowserSignIn } from '../../api/people/browser-sign-in.ts';
import { clientOf } from '../../api/people/client-of.ts';
import { strictObject, text } from '../../api/schemas.ts';
import type {
  AcceptInvitationService,
  PresentSession,
} from '../../domain/invitations/accept-invitation.service.ts';
import { AppError } from '../../platform/errors.ts';
import { enteredText, Token, TokenQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';

export interface InvitationPageDependencies {
  pages: Pages;
  browserSignIn: BrowserSignIn;
  invitationAcceptance: AcceptInvitationService;
}

/** The page behind the link of an invitation. Opening it changes nothing. */
export const invitationPages =
  (dependencies: InvitationPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, browserSignIn, invitationAcceptance } = dependencies;

    async function show(
      request: FastifyRequest,
      reply: FastifyReply,
      { token, problem }: { token: string; problem?: AppError },
    ): Promise<FastifyReply> {
      const [invitation, session] = await Promise.all([
        invitationAcceptance.preview(token),
        findValidSession(request),
      ]);
      const { userId } = invitation;
      return pages.send(request, reply, {
        template: 'members/accept-invitation',
        title: `Invitation to ${invitation.organizationName}`,
        data: {
          invitation,
          token,
          step:
            session && session.person.userId !== userId
              ? 'other-account'
              : userId === null
                ? 'new-account'
                : session
                  ? 'confirm'
                  : 'sign-in',
          login: `/login?${new URLSearchParams({ next: pathOf(token) })}`,
        },
        problem,
      });
    }

    app.get(
      '/invitations/accept',
      {
        config: { public: true },
        schema: { operationId: 'pages.invitation', querystring: TokenQuery },
      },
      async (request, reply) => show(request, reply, { token: request.query.token }),
    );

    pages.form(app, '/invitations/accept', {
      config: { public: true },
      schema: {
        operationId: 'pages.acceptInvitation',
        body: strictObject({
          token: Token,
          name: Type.Optional(text(200)),
          password: Type.Optional(text(256)),
        }),
      },
      work: async (request) => {
        const { token, name = '', password } = request.body;
        return invitationAcceptance.accept(
          { token, ...(name === '' ? {} : { name }), ...(password === undefined ? {} : { password }) },
          clientOf(request),
          await findValidSession(request),
        );
      },
      show(request, reply, problem) {
        if (problem.code !== 'validation_error') throw problem;
        return show(request, reply, { token: enteredText(request, 'token'), problem });
      },
      done: (_request, reply, { signIn, organizationId }) =>
        browserSignIn.finish(reply, signIn, `/overview?org=${organizationId}`),
    });
    done();
  };

const pathOf = (token: string): string => `/invitations/accept?${new URLSearchParams({ token })}`;

/** A browser whose session has ended is like one without. */
async function findValidSession(request: FastifyRequest): Promise<PresentSession | undefined> {
  try {
    return await request.findSession();
  } catch (error) {
    if (error instanceof AppError && error.status === 401) return undefined;
    throw error;
  }
}
