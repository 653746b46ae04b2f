import formbody from '@fastify/formbody';
import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Static, TObject } from 'typebox';
import type { ListRequest, Lists } from '../../api/lists.ts';
import { localPath } from '../../api/people/local-path.ts';
import type { BrowserSession } from '../../api/plugins/browser-session.ts';
import type { Cookies } from '../../api/plugins/cookies.ts';
import { toAppError } from '../../api/plugins/error-responses.ts';
import type { RenderStandalonePage, StandalonePage } from '../../api/plugins/standalone-pages.ts';
import type { Permission } from '../../domain/identity/permissions.ts';
import { SUSPENSION_CAUSES } from '../../domain/notifications/administration-templates.ts';
import type { ListOpenSuspensions, OpenSuspension } from '../../domain/suspensions/suspension.service.ts';
import { createSigner } from '../../platform/crypto.ts';
import { type AppError, ERROR_CODES } from '../../platform/errors.ts';
import type { Page as PageOf, PageRequest } from '../../platform/pagination.ts';
import { type ApiCall, toCurl } from './api-call.ts';
import { createCsrf } from './csrf.ts';
import { readFormWithFiles } from './form-with-files.ts';
import { formatDate, formatTime } from './formats.ts';
import { OrganizationQuery } from './forms.ts';
import { type Query, withQuery } from './links.ts';
import { createLiveParts, type LivePart, type LivePartsOptions } from './live.ts';
import { createNotices, type Notice } from './notices.ts';
import { createShells, type ShellOptions } from './shell.ts';
import { createUi } from './ui.ts';
import { createViews } from './views.ts';

/** What page routes answer with. */
export interface Pages {
  /**
   * Sends a page. The template gets `data`, the functions `ui`, `link`, `can` and `mayChange`, and what the frame shows.
   *
   * @param page.problem the rejection of the form that the person has submitted; the page shows it and has its status.
   */
  send(request: FastifyRequest, reply: FastifyReply, page: Page): FastifyReply;
  /** A page for a browser that came to a route of the API. It has no session, so it shows nothing of one. */
  renderStandalone: RenderStandalonePage;
  /** Renders a part of a page, for live updates. */
  part(request: FastifyRequest, template: string, data: object): string;
  /** Registers the POST of a form. Its page is shown again with what was wrong, or `done` answers. */
  form<Body extends TObject, Params extends TObject, Result>(
    app: FastifyInstance,
    path: string,
    form: Form<Body, Params, Result>,
  ): void;
  /** Sends a part of a page again after events, until either side closes the stream. */
  live(request: FastifyRequest, reply: FastifyReply, part: LivePart): Promise<FastifyReply>;
  /** Path and query of the page that the request shows: of a form, the page that it is on. */
  addressOf(request: FastifyRequest): string;
  /** A local path of the organization and environment that the request shows. */
  link(request: FastifyRequest, path: string, query?: Query): string;
  /** The page of a list that the query asks for. @throws AppError `invalid_cursor`. */
  readPage(request: FastifyRequest, page: Pick<PageRequest, 'limit'> & Partial<PageRequest>): PageRequest;
  /** The path of the next page of a list; undefined on the last one. */
  nextPage(request: FastifyRequest, page: PageOf<unknown>, order?: PageRequest['order']): string | undefined;
  /** Redirects after a form was accepted, so that reloading the page does not submit it again. */
  seeOther(reply: FastifyReply, path: string, notice?: Notice, about?: string): FastifyReply;
  /** Sends the browser to another site by a page, because browsers block redirects of forms to other sites here. */
  leave(request: FastifyRequest, reply: FastifyReply, to: { url: string; name: string }): FastifyReply;
}

export interface Page {
  template: string;
  title: string;
  data?: object;
  problem?: AppError | undefined;
  /** The call of the API that gives the same. */
  apiCall?: ApiCall;
}

type FormRequest<Body extends TObject, Params extends TObject> = FastifyRequest & {
  body: Static<Body>;
  params: Static<Params>;
};

export interface Form<Body extends TObject, Params extends TObject, Result> {
  config: FastifyContextConfig;
  schema: { operationId: string; body: Body; params?: Params; querystring?: TObject };
  /** What the form asks for. */
  work(request: FormRequest<Body, Params>): Promise<Result>;
  /** The page of the form again. */
  show(
    request: FormRequest<Body, Params>,
    reply: FastifyReply,
    problem: AppError,
  ): Promise<FastifyReply> | FastifyReply;
  done(
    request: FormRequest<Body, Params>,
    reply: FastifyReply,
    result: Result,
  ): Promise<FastifyReply> | FastifyReply;
}

export interface PageOptions extends ShellOptions, LivePartsOptions {
  signingKey: string;
  publicUrl: string;
  cookies: Cookies;
  browserSession: BrowserSession;
  lists: Lists;
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

const NOTICE_SIGNATURE_BYTES = 16;

/** Sets up a Fastify context for pages: cookies instead of bearer tokens, forms, protection of forms, errors as pages. */
export async function installPages(app: FastifyInstance, options: PageOptions): Promise<Pages> {
  const { signingKey, publicUrl, cookies, browserSession, lists, openSuspensions, hasBilling } = options;
  const csrf = createCsrf({ signer: createSigner(signingKey, 'csrf'), cookies, browserSession });
  const notices = createNotices(createSigner(signingKey, 'notices', NOTICE_SIGNATURE_BYTES));
  const views = createViews();
  /** Paths of pages, as of routes. */
  const opened = new Set<string>();
  const shells = createShells(options);
  const sendLivePart = createLiveParts(options);
  await app.register(formbody);

  app.addHook('onRoute', (route) => {
    // A part that is sent again belongs to its page: its links and cursors are those of the page.
    if ([route.method].flat().includes('GET') && !route.config?.heldOpen) opened.add(route.url);
    route.config = { ...route.config, page: true, exemptFromUsageLimit: true };
    route.schema = { ...route.schema, hide: true };
  });
  app.addHook('onRequest', async (request, reply) => {
    const home = homeOf(request, publicUrl);
    if (home !== undefined && request.method === 'GET') return reply.redirect(home, 307);
    await shells.load(request, reply);
  });
  app.decorateRequest('shell');
  app.decorateRequest('formFiles');
  app.decorateRequest('formFailure');
  app.decorateRequest('suspensions');
  app.addHook('preHandler', async (request) => {
    if (request.suspension?.code === 'organization_suspended')
      request.suspensions = await openSuspensions(request.scope);
  });
  app.addHook('preValidation', async (request) => {
    if (request.method !== 'POST') return;
    const verify = (token: unknown) => csrf.verify(request, request.headers['x-csrf-token'] ?? token);
    if (request.isMultipart?.()) {
      request.body = await readFormWithFiles(request, verify);
      return;
    }
    const { csrf: field, ...body } = (request.body ?? {}) as { csrf?: unknown };
    verify(field);
    request.body = body;
  });

  /** A request of the API's lists with the filters of the page, which may be shown again by one of its forms. */
  function listOf(request: FastifyRequest, page: Partial<PageRequest>): ListRequest {
    const { scope, person, staff, routeOptions, params, query } = request;
    const { notice: _notice, about: _about, org: _org, env: _env, ...filters } = query as Query;
    const { pattern } = pageOf(request, opened);
    return {
      scope,
      person,
      staff,
      routeOptions: { ...routeOptions, url: pattern },
      params: Object.fromEntries(
        Object.entries(params as object).filter(([name]) => pattern.split('/').includes(`:${name}`)),
      ),
      // An empty filter filters nothing, and the link of the next page does not have it.
      query: { ...page, ...Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== '')) },
    };
  }

  /** What every template gets. */
  function describe(request: FastifyRequest, token: string, problem: AppError | undefined): object {
    const { scope, shell } = request;
    const can = (permission: Permission) => scope?.permissions.has(permission) ?? false;
    return {
      ui: createUi({
        csrf: token,
        problem,
        form: (request.body ?? {}) as Record<string, unknown>,
        action: request.url.split('?')[0] ?? '',
        isStaff: request.staff !== undefined,
        next: localPath(pages.addressOf(request)),
      }),
      csrf: token,
      can,
      mayChange: (permission: Permission) => can(permission) && scope?.impersonation === undefined,
      shell,
      problem,
    };
  }

  const pages: Pages = {
    send(request, reply, { template, title, data = {}, problem, apiCall }) {
      const token = csrf.tokenFor(request, reply);
      const { scope, shell } = request;
      const html = views.render(template, {
        ...describe(request, token, problem),
        link: (path: string, query?: Query) => pages.link(request, path, query),
        ...data,
        title,
        notice: notices.read(request.query),
        path: request.url.split('?')[0],
        isSignedIn: browserSession.read(request) !== undefined,
        impersonation: describeImpersonation(request),
        suspension: describeSuspension(request, hasBilling),
        curl:
          apiCall &&
          toCurl(apiCall, {
            publicUrl,
            environmentId: shell?.link('').includes('env=') ? scope.environmentId : undefined,
          }),
      });
      return reply
        .code(problem?.status ?? 200)
        .headers({ ...problem?.headers, 'content-security-policy': PAGE_POLICY, 'x-robots-tag': 'noindex' })
        .type('text/html; charset=utf-8')
        .send(html);
    },
    renderStandalone(request, reply, page) {
      reply.headers({ 'content-security-policy': PAGE_POLICY, 'x-robots-tag': 'noindex' });
      const problem = page.kind === 'problem' ? page.problem : undefined;
      const ui = createUi({ csrf: '', problem, form: {}, action: '', next: '/' });
      const none = () => false;
      return views.render(`components/${page.kind === 'problem' ? 'error' : page.kind}`, {
        ...page,
        ui,
        can: none,
        mayChange: none,
        link: (path: string, query: Query = {}) => withQuery(path, query),
        title: titleOf(page),
        path: '',
        requestId: request.id,
      });
    },
    part: (request, template, data) =>
      views.render(template, {
        ...describe(request, csrf.tokenOf(request), undefined),
        link: (path: string, query?: Query) => pages.link(request, path, query),
        ...data,
      }),
    form(context, path, { config, schema, work, show, done }) {
      context.post(
        path,
        // The handler shows the page again with what is wrong, and with what the person has entered.
        { config, schema: { querystring: OrganizationQuery, ...schema }, attachValidation: true },
        async (plain, reply) => {
          const request = plain as Parameters<typeof work>[0];
          if (plain.validationError) {
            const invalid = toAppError(plain.validationError);
            if (plain.validationError.validationContext !== 'body') throw invalid;
            return show(request, reply, invalid);
          }
          const working = work(request);
          const problem = await rejectionOf(working);
          if (problem && problem.status >= 500) logFailure(request, problem);
          return problem ? show(request, reply, problem) : done(request, reply, await working);
        },
      );
    },
    live: sendLivePart,
    addressOf(request) {
      if (request.method === 'GET') return request.url;
      const [, query] = request.url.split('?');
      const { path } = pageOf(request, opened);
      return query === undefined ? path : `${path}?${query}`;
    },
    link: ({ shell }, path, query) => shell?.link(path, query) ?? withQuery(path, query ?? {}),
    readPage: (request, { order = 'desc', ...page }) => lists.read(listOf(request, { order, ...page })),
    nextPage(request, page, order = 'desc') {
      const { next_cursor: cursor } = lists.present(listOf(request, { order }), page, () => null);
      if (cursor === null) return undefined;
      const { notice: _notice, about: _about, ...query } = request.query as Query;
      return withQuery(pageOf(request, opened).path, { ...query, cursor });
    },
    seeOther: (reply, path, notice, about) =>
      reply.redirect(
        withQuery(path, { notice, about: notice && about ? notices.sign(notice, about) : undefined }),
        303,
      ),
    leave: (request, reply, { url, name }) =>
      pages.send(request, reply, {
        template: 'components/leave',
        title: `Continue to ${name}`,
        data: { url, name, refreshTo: url },
      }),
  };

  app.setErrorHandler(async (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    // The session is checked before the hook above, and its cookie belongs to the host name.
    const home = homeOf(request, publicUrl);
    if (home !== undefined && request.method === 'GET') return reply.redirect(home, 307);
    const problem = toAppError(error);
    if (problem.status >= 500) logFailure(request, problem);
    if (problem.code === 'unauthenticated' || problem.code === 'session_expired') {
      if (request.headers.accept?.includes('application/json'))
        return reply.code(problem.status).send({ detail: problem.detail });
      if (request.routeOptions.config.permission && browserSession.readImpersonation(request) !== undefined) {
        browserSession.endImpersonation(reply);
        return pages.seeOther(reply, '/admin', 'impersonation-ended');
      }
      const query = new URLSearchParams({ next: localPath(pages.addressOf(request)) });
      if (problem.code === 'session_expired') query.set('notice', 'sign-in-again');
      return reply.redirect(`/login?${query}`, 303);
    }
    if (problem.code === 'organization_required') {
      const last = request.method === 'GET' ? await shells.findLastOrganization(request) : undefined;
      return reply.redirect(
        last === undefined
          ? withQuery('/organizations', { next: localPath(request.url) })
          : withQuery(request.url, { org: last }),
        303,
      );
    }
    if (request.headers['content-type']?.startsWith('application/json'))
      return reply.code(problem.status).send({ detail: problem.detail });
    // The permission is checked before the frame is loaded.
    if (!request.shell && problem.status < 500) await shells.load(request, reply);
    return pages.send(request, reply, {
      template: 'components/error',
      title: ERROR_CODES[problem.code].title,
      problem,
    });
  });
  return pages;
}

function titleOf(page: StandalonePage): string {
  if (page.kind === 'sso-tested') return 'The test passed';
  if (page.kind === 'sso-confirm') return `Sign in to ${page.organizationName}?`;
  const { code } = page.problem;
  return code === 'not_found' ? 'There is no page at this address' : ERROR_CODES[code].title;
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

const logFailure = ({ log }: FastifyRequest, problem: AppError): void =>
  log.error({ err: problem.cause ?? problem }, 'page failed');

/** Runs what a form asks for. Returns the rejection if the person can correct it, or submit the form again later. */
async function rejectionOf(work: Promise<unknown>): Promise<AppError | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    const problem = toAppError(error);
    const isShown = problem.status < 500 ? !isAboutSession(problem) : problem.code === 'unavailable';
    if (!isShown) throw error;
    return problem;
  }
}

const isAboutSession = ({ code }: AppError): boolean =>
  code === 'session_expired' || code === 'unauthenticated';

/** The page that a form is on: `/settings/policies/preview` belongs to `/settings/policies`, the longest path of a page. */
function pageOf(
  { url, routeOptions }: FastifyRequest,
  opened: ReadonlySet<string>,
): { path: string; pattern: string } {
  const [path = ''] = url.split('?');
  const [parts, pattern] = [path.split('/'), (routeOptions.url ?? '').split('/')];
  while (parts.length > 2 && !opened.has(pattern.slice(0, parts.length).join('/'))) parts.pop();
  return { path: parts.join('/'), pattern: pattern.slice(0, parts.length).join('/') };
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
