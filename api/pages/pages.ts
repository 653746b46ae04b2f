import formbody from '@fastify/formbody';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { SUSPENSION_CAUSES } from '../../domain/notifications/administration-templates.ts';
import type { ListOpenSuspensions, OpenSuspension } from '../../domain/suspensions/suspension.service.ts';
import { createSigner } from '../../platform/crypto.ts';
import { AppError, ERROR_CODES } from '../../platform/errors.ts';
import type { BrowserSession } from '../people/browser-session.ts';
import { localPath } from '../people/local-path.ts';
import type { Cookies } from '../plugins/cookies.ts';
import { toAppError } from '../plugins/error-responses.ts';
import { createCsrf } from './csrf.ts';
import { formatDate, formatTime } from './formats.ts';
import { NOTICES, type Notice } from './notices.ts';
import { createViews } from './views.ts';

/** What page routes answer with. */
export interface Pages {
  /**
   * Sends a page. The template gets `data`, and beside it `csrf`, `path`, `isSignedIn`, `impersonation`, `suspension`,
   * `notice` and `problem`.
   *
   * @param page.problem the rejection of the form that the person has submitted; the page shows it and has its status.
   */
  send(request: FastifyRequest, reply: FastifyReply, page: Page): FastifyReply;
  /** Renders a part of a page, for live updates. */
  render(template: string, data: object): string;
  /** Redirects after a form was accepted, so that reloading the page does not submit it again. */
  seeOther(reply: FastifyReply, path: string, notice?: Notice): FastifyReply;
  /** Sends the browser to another site by a page, because browsers block redirects of forms to other sites here. */
  leave(request: FastifyRequest, reply: FastifyReply, to: { url: string; name: string }): FastifyReply;
}

export interface Page {
  template: string;
  title: string;
  data?: object;
  problem?: AppError | undefined;
}

export interface PageOptions {
  signingKey: string;
  publicUrl: string;
  cookies: Cookies;
  browserSession: BrowserSession;
  openSuspensions: ListOpenSuspensions;
  /** Owners can pay on a page. */
  hasBilling: boolean;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Why the organization of the page is suspended; unset if it is not. */
    suspensions?: OpenSuspension[];
  }
}

/** Scripts and styles are files of this service; nothing is loaded from elsewhere, framed, or submitted to another site. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Sets up a Fastify context for pages: cookies instead of bearer tokens, forms, protection of forms, errors as pages. */
export async function installPages(app: FastifyInstance, options: PageOptions): Promise<Pages> {
  const { signingKey, publicUrl, cookies, browserSession, openSuspensions, hasBilling } = options;
  const csrf = createCsrf({ signer: createSigner(signingKey, 'csrf'), cookies, browserSession });
  const views = createViews();
  await app.register(formbody);

  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, page: true, exemptFromUsageLimit: true };
    route.schema = { ...route.schema, hide: true };
  });
  app.addHook('onRequest', async (request, reply) => {
    const home = homeOf(request, publicUrl);
    if (home !== undefined && request.method === 'GET') return reply.redirect(home, 307);
  });
  app.decorateRequest('suspensions');
  app.addHook('preHandler', async (request) => {
    if (request.suspension?.code === 'organization_suspended')
      request.suspensions = await openSuspensions(request.scope);
  });
  app.addHook('preValidation', async (request) => {
    if (request.method !== 'POST') return;
    const { csrf: field, ...body } = (request.body ?? {}) as { csrf?: unknown };
    csrf.verify(request, request.headers['x-csrf-token'] ?? field);
    request.body = body;
  });

  const pages: Pages = {
    send(request, reply, { template, title, data = {}, problem }) {
      const html = views.render(template, {
        ...data,
        title,
        problem,
        notice: noticeOf(request),
        csrf: csrf.tokenFor(request, reply),
        path: request.url.split('?')[0],
        isSignedIn: browserSession.read(request) !== undefined,
        impersonation: describeImpersonation(request),
        suspension: describeSuspension(request, hasBilling),
      });
      return reply
        .code(problem?.status ?? 200)
        .headers({ ...problem?.headers, 'content-security-policy': PAGE_POLICY, 'x-robots-tag': 'noindex' })
        .type('text/html; charset=utf-8')
        .send(html);
    },
    render: views.render,
    seeOther(reply, path, notice) {
      const separator = path.includes('?') ? '&' : '?';
      return reply.redirect(notice === undefined ? path : `${path}${separator}notice=${notice}`, 303);
    },
    leave: (request, reply, { url, name }) =>
      pages.send(request, reply, {
        template: 'leave',
        title: `Continue to ${name}`,
        data: { url, name, refreshTo: url },
      }),
  };

  app.setErrorHandler((error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    // The session is checked before the hook above, and its cookie belongs to the host name.
    const home = homeOf(request, publicUrl);
    if (home !== undefined && request.method === 'GET') return reply.redirect(home, 307);
    const problem = toAppError(error);
    if (problem.status >= 500) request.log.error({ err: problem.cause ?? error }, 'page failed');
    if (problem.code === 'unauthenticated' || problem.code === 'session_expired') {
      if (request.headers.accept?.includes('application/json'))
        return reply.code(problem.status).send({ detail: problem.detail });
      if (request.routeOptions.config.permission && browserSession.readImpersonation(request) !== undefined) {
        browserSession.endImpersonation(reply);
        return pages.seeOther(reply, '/admin', 'impersonation-ended');
      }
      const next = request.method === 'GET' ? request.url : formPage(request);
      const query = new URLSearchParams({ next: localPath(next) });
      if (problem.code === 'session_expired') query.set('notice', 'sign-in-again');
      return reply.redirect(`/login?${query}`, 303);
    }
    if (problem.code === 'organization_required')
      return reply.redirect(`/organizations?${new URLSearchParams({ next: localPath(request.url) })}`, 303);
    if (request.headers['content-type']?.startsWith('application/json'))
      return reply.code(problem.status).send({ detail: problem.detail });
    return pages.send(request, reply, {
      template: 'error',
      title: ERROR_CODES[problem.code].title,
      problem,
    });
  });
  return pages;
}

/** For the banner of pages that staff see in the name of an organization. */
function describeImpersonation({
  scope,
}: FastifyRequest): { until: string; allowsWrite: boolean } | undefined {
  const { impersonation } = scope ?? {};
  return (
    impersonation && { until: formatTime(impersonation.expiresAt), allowsWrite: impersonation.allowsWrite }
  );
}

/** For the banner of a suspended organization; undefined for others. */
function describeSuspension(
  { suspensions = [], scope }: FastifyRequest,
  hasBilling: boolean,
): { since: string; causes: string[]; payPath: string | undefined } | undefined {
  const [oldest] = suspensions;
  if (!oldest) return undefined;
  const isUnpaid = suspensions.some(({ reason }) => reason === 'payment');
  const mayPay = hasBilling && scope.permissions.has('billing:manage') && !scope.impersonation;
  return {
    since: formatDate(oldest.since),
    causes: suspensions.map(({ reason }) => SUSPENSION_CAUSES[reason]),
    payPath: isUnpaid && mayPay ? `/billing?org=${scope.organizationId}` : undefined,
  };
}

/** Runs what a form asks for. Returns the rejection if the person can correct it. */
export async function rejectionOf(work: Promise<unknown>): Promise<AppError | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    if (error instanceof AppError && error.status < 500 && !isAboutSession(error)) return error;
    throw error;
  }
}

const isAboutSession = ({ code }: AppError): boolean =>
  code === 'session_expired' || code === 'unauthenticated';

function noticeOf({ query }: FastifyRequest): string | undefined {
  const { notice } = query as { notice?: unknown };
  return typeof notice === 'string' && Object.hasOwn(NOTICES, notice) ? NOTICES[notice as Notice] : undefined;
}

/** The page that a form is on: `/account/password` belongs to `/account`, and each `/connect/{request}` is a page. */
function formPage({ url }: FastifyRequest): string {
  const [path = '', query] = url.split('?');
  const page = /^\/connect\/[^/]+/.exec(path)?.[0] ?? `/${path.split('/')[1]}`;
  return query === undefined ? page : `${page}?${query}`;
}

/**
 * A passkey belongs to a host name, never to an IP address (WebAuthn section 5.1.3). A page that was opened by a loopback
 * address is opened again by the name in PUBLIC_URL.
 */
function homeOf({ host, url }: FastifyRequest, publicUrl: string): string | undefined {
  const home = new URL(publicUrl);
  const isLoopbackAddress = /^(?:127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/.test(host);
  if (home.hostname !== 'localhost' || !isLoopbackAddress) return undefined;
  const [, port] = /:(\d+)$/.exec(host) ?? [];
  return port === home.port ? `${home.origin}${url}` : undefined;
}
