import formbody from '@fastify/formbody';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { AccountService } from '../../domain/people/account.service.ts';
import { ssoNotStarted } from '../../domain/sso/sso-checks.ts';
import type { SsoLinkService } from '../../domain/sso/sso-link.service.ts';
import type { SsoLoginService, SsoOutcome } from '../../domain/sso/sso-login.service.ts';
import { AppError } from '../../platform/errors.ts';
import { MfaRequired, presentSignIn, SessionCreated, SignInResponse } from '../people/auth.schemas.ts';
import { clientOf } from '../people/client-of.ts';
import { localPath } from '../people/local-path.ts';
import type { BrowserSession } from '../plugins/browser-session.ts';
import type { Cookies } from '../plugins/cookies.ts';
import { toAppError } from '../plugins/error-responses.ts';
import type { StandalonePage } from '../plugins/standalone-pages.ts';
import { NoContent, postProblems, problems, ref, strictObject, text } from '../schemas.ts';
import { SsoConfirmation, SsoFormerLink, SsoLink, SsoRedirect, SsoTested } from './sso.schemas.ts';
import { createSsoCookies, LINK_PAGE, type SsoCookies } from './sso-cookies.ts';
import { wantsJson } from './sso-pages.ts';

export interface SsoLoginRouteDependencies {
  ssoLogins: SsoLoginService;
  ssoLinks: SsoLinkService;
  accounts: AccountService;
  cookies: Cookies;
  browserSession: BrowserSession;
}

const tags = ['SSO'];
/** Where a browser goes that asked for no page. */
export const DEFAULT_TARGET = '/overview';
/** The person shows through a former configuration whose account it is. */
const FORMER_PAGE = '/login/former';
/** Identity providers add parameters of their own. */
const value = text(16_384, { description: 'From the identity provider.' });
const CallbackQuery = Type.Object(
  { code: Type.Optional(value), state: Type.Optional(value), error: Type.Optional(value) },
  { additionalProperties: value, maxProperties: 50 },
);
const OidcCallback = strictObject({
  code: Type.Optional(value),
  state: Type.Optional(value),
  iss: Type.Optional(value),
  error: Type.Optional(value),
  error_description: Type.Optional(value),
  error_uri: Type.Optional(value),
  session_state: Type.Optional(value),
  scope: Type.Optional(value),
});

export const SsoFinished = Type.Unsafe<
  | Static<typeof SessionCreated>
  | Static<typeof MfaRequired>
  | Static<typeof SsoTested>
  | Static<typeof SsoConfirmation>
  | string
>({
  anyOf: [ref(SessionCreated), ref(MfaRequired), ref(SsoTested), ref(SsoConfirmation)],
  description: 'A session; or the result of a test.',
});

/** For routes that browsers open: every error may also be a page. */
export function withPages(responses: ReturnType<typeof problems>): ReturnType<typeof problems> {
  return Object.fromEntries(
    Object.entries(responses).map(([status, { description, content }]) => [
      status,
      { description, content: { ...content, 'text/html': { schema: text(100_000) } } },
    ]),
  ) as ReturnType<typeof problems>;
}

/** Responses of a callback: JSON for programs; a redirect or a page for browsers. */
export const callbackResponses = (errors: ReturnType<typeof problems>) => ({
  200: {
    description: 'A session; or the result of a test.',
    content: { 'application/json': { schema: SsoFinished }, 'text/html': { schema: text(100_000) } },
  },
  303: { ...NoContent, description: 'To the page where the login began, with the cookie of the session.' },
  ...withPages(errors),
});

export const ssoLoginRoutes =
  (dependencies: SsoLoginRouteDependencies): FastifyPluginAsyncTypebox =>
  async (app) => {
    const { ssoLogins, ssoLinks, accounts } = dependencies;
    const ssoCookies = createSsoCookies(dependencies.cookies);
    const answer = createAnswers({ ...dependencies, ssoCookies });
    await app.register(formbody, { bodyLimit: 1024 * 1024 });
    showErrorsInBrowsers(app);

    app.get(
      '/auth/sso/:orgIdentifier',
      {
        config: { public: true },
        schema: {
          operationId: 'sso.start',
          summary: 'Start signing in through SSO',
          description: 'Open redirect_url in the browser that received this response.',
          tags,
          params: strictObject({
            orgIdentifier: text(254, {
              minLength: 1,
              description:
                'Id or slug of the organization; or the address of the person, whose domain the organization has verified.',
            }),
          }),
          querystring: strictObject({
            redirect_to: Type.Optional(
              text(500, {
                description: 'Path of this service to continue at; others are replaced by /account.',
              }),
            ),
            fresh: Type.Optional(
              Type.Boolean({ description: 'The identity provider must ask the person to sign in again.' }),
            ),
          }),
          response: { 200: ref(SsoRedirect), ...problems() },
        },
      },
      async (request, reply) => {
        const { redirect_to: redirectTo, fresh = false } = request.query;
        const start = await ssoLogins.start({
          organization: request.params.orgIdentifier,
          redirectTo: localPath(redirectTo, DEFAULT_TARGET),
          isFresh: fresh,
          browserToken: ssoCookies.readBrowser(request),
        });
        ssoCookies.setBrowser(reply, start.browserToken);
        return { object: 'redirect' as const, redirect_url: start.redirectUrl };
      },
    );

    const finishOidc = async (request: FastifyRequest, reply: FastifyReply, parameters: URLSearchParams) =>
      answer(
        request,
        reply,
        await ssoLogins.finishOidc(
          { parameters, browserToken: ssoCookies.readBrowser(request) },
          clientOf(request),
        ),
      );

    app.get(
      '/auth/sso/oidc/callback',
      {
        config: { public: true },
        schema: {
          operationId: 'sso.finishOidc',
          summary: 'Finish signing in through OIDC',
          description: 'Identity providers send browsers here.',
          tags,
          querystring: CallbackQuery,
          response: callbackResponses(problems(409)),
        },
      },
      // The query as it was sent: a parameter that occurs twice is refused.
      (request, reply) => finishOidc(request, reply, new URL(request.url, 'http://localhost').searchParams),
    );

    app.post(
      '/auth/sso/oidc/callback',
      {
        config: { public: true },
        schema: {
          operationId: 'sso.postOidc',
          summary: 'Finish signing in through OIDC, by form or JSON',
          tags,
          body: OidcCallback,
          response: callbackResponses(postProblems()),
        },
      },
      (request, reply) => finishOidc(request, reply, new URLSearchParams(Object.entries(request.body))),
    );

    app.post(
      '/auth/sso/link',
      {
        config: { person: 'fresh' },
        schema: {
          operationId: 'sso.link',
          summary: 'Link your account with SSO',
          description:
            'After the error account_exists: sign in to the account, then send its link_token from the same browser, within ten minutes. Returns a session as SSO does.',
          tags,
          body: ref(SsoLink),
          response: { 200: SignInResponse, ...postProblems() },
        },
      },
      async (request, reply) => {
        const { userId, signIn } = await ssoLinks.link(request.person, linkOf(request), clientOf(request));
        reply.rememberDevice(signIn);
        return presentSignIn(signIn, await accounts.get(userId));
      },
    );

    const linkOf = (request: FastifyRequest) => ({
      token: (request.body as Static<typeof SsoLink>).link_token,
      browserToken: ssoCookies.readBrowser(request),
    });

    app.post(
      '/auth/sso/link/former',
      {
        config: { public: true },
        schema: {
          operationId: 'sso.linkByFormer',
          summary: 'Show through a former configuration whose account to link',
          description:
            'After the errors account_exists and sso_link_required. Open redirect_url in the browser that received this response: a sign-in there links the account, and finishes the login.',
          tags,
          body: ref(SsoFormerLink),
          response: { 200: ref(SsoRedirect), ...postProblems() },
        },
      },
      async (request, reply) => {
        const start = await ssoLinks.startLink(linkOf(request), request.body.configuration_id);
        ssoCookies.setBrowser(reply, start.browserToken);
        return { object: 'redirect' as const, redirect_url: start.redirectUrl };
      },
    );

    app.post(
      '/auth/sso/link/join',
      {
        config: { public: true },
        schema: {
          operationId: 'sso.join',
          summary: 'Join through SSO as a person without an account',
          description: 'After the error sso_link_required. Returns a session as SSO does.',
          tags,
          body: ref(SsoLink),
          response: { 200: SignInResponse, ...postProblems() },
        },
      },
      async (request, reply) => {
        const { userId, signIn } = await ssoLinks.join(linkOf(request), clientOf(request));
        reply.rememberDevice(signIn);
        return presentSignIn(signIn, await accounts.get(userId));
      },
    );
  };

/** In a browser an error is a page. Registered for the routes of the plugin alone. */
export function showErrorsInBrowsers(app: Parameters<FastifyPluginAsyncTypebox>[0]): void {
  app.setErrorHandler((error, request, reply) => {
    const problem = toAppError(error);
    if (wantsJson(request) || problem.status >= 500 || !isBrowserRoute(request)) throw error;
    return reply
      .code(problem.status)
      .headers(problem.headers)
      .type('text/html; charset=utf-8')
      .send(request.server.standalonePages.render(request, reply, { kind: 'problem', problem }));
  });
}

const isBrowserRoute = ({ routeOptions }: FastifyRequest): boolean =>
  /\/(callback|acs|confirm)(\/|$)/.test(routeOptions.url ?? '');

interface AnswerDependencies extends Pick<SsoLoginRouteDependencies, 'accounts' | 'browserSession'> {
  ssoCookies: SsoCookies;
}

/** Returns what a client gets when a login is finished. */
export function createAnswers({ accounts, browserSession, ssoCookies }: AnswerDependencies) {
  return async (request: FastifyRequest, reply: FastifyReply, outcome: SsoOutcome) => {
    const isProgram = wantsJson(request);
    if (outcome.kind === 'unknown') {
      if (isProgram) throw notLinked(outcome);
      ssoCookies.setLink(reply, outcome.linkToken);
      return reply.redirect(outcome.former.length > 0 ? FORMER_PAGE : LINK_PAGE, 303);
    }
    if (outcome.kind === 'tested') {
      if (!isProgram) return sendPage(request, reply, { ...outcome, kind: 'sso-tested' });
      return {
        object: 'sso_test' as const,
        status: 'tested' as const,
        configuration_id: outcome.configurationId,
        checks: outcome.checks,
      };
    }
    if (outcome.kind === 'confirm') {
      ssoCookies.setBrowser(reply, outcome.browserToken);
      if (!isProgram) return sendPage(request, reply, { ...outcome, kind: 'sso-confirm' });
      return {
        object: 'sso_confirmation' as const,
        status: 'confirmation_required' as const,
        confirm_token: outcome.confirmToken,
        organization_name: outcome.organizationName,
        email: outcome.email,
      };
    }
    const { userId, signIn } = outcome.signedIn;
    if (isProgram) {
      reply.rememberDevice(signIn);
      return presentSignIn(signIn, await accounts.get(userId));
    }
    // SSO never asks for a second factor of this service before the session begins.
    if (signIn.kind !== 'session') throw ssoNotStarted();
    browserSession.start(reply, signIn.session);
    return reply.redirect(outcome.redirectTo, 303);
  };
}

function sendPage(request: FastifyRequest, reply: FastifyReply, page: StandalonePage): string {
  reply.type('text/html; charset=utf-8');
  return request.server.standalonePages.render(request, reply, page);
}

function notLinked({ linkToken, hasAccount, former }: Extract<SsoOutcome, { kind: 'unknown' }>): AppError {
  const [latest] = former;
  const extensions = {
    link_token: linkToken,
    ...(latest ? { former_configuration_id: latest.configurationId } : {}),
  };
  const byFormer =
    latest === undefined
      ? ''
      : ' Or sign in through a former configuration: POST /api/v1/auth/sso/link/former with link_token and, as configuration_id, former_configuration_id.';
  const bySignIn =
    'Sign in to the account as before, and then link it: POST /api/v1/auth/sso/link with link_token, within ten minutes.';
  if (hasAccount)
    return new AppError('account_exists', {
      detail: 'Your email address has an account here that is not linked with this single sign-on.',
      fix: bySignIn + byFormer,
      extensions,
    });
  return new AppError('sso_link_required', {
    detail: 'This single sign-on has replaced another one, and does not know you yet.',
    fix: `${bySignIn}${byFormer} If you have never signed in here: POST /api/v1/auth/sso/link/join with link_token.`,
    extensions,
  });
}
