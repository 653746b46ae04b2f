import { randomUUID } from 'node:crypto';
import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { singleLineText } from '../../api/messages/addresses.ts';
import { enumOf, id, strictObject, text } from '../../api/schemas.ts';
import type { DomainService } from '../../domain/domains/domain.service.ts';
import type { InboxFilter, InboxService } from '../../domain/inboxes/inbox.service.ts';
import type { MetricService } from '../../domain/metrics/metric.service.ts';
import type { AppError } from '../../platform/errors.ts';
import type { RunOnce } from '../../platform/idempotency/run-once.ts';
import { listQuery } from '../shell/forms.ts';
import type { Notice } from '../shell/notices.ts';
import type { Pages } from '../shell/pages.ts';
import { inboxState } from './inbox-words.ts';

export interface InboxesPageDependencies {
  pages: Pages;
  inboxes: InboxService;
  domains: DomainService;
  metrics: MetricService;
  runOnce: RunOnce;
  config: { MAIL_DOMAIN: string };
}

const PAGE_SIZE = 50;
/** Domains to choose from. */
const MAX_DOMAINS = 100;

/** What each choice of the filter asks for. */
const STATES = {
  active: { status: 'active', sendPaused: false },
  paused: { sendPaused: true },
  suspended: { status: 'suspended' },
} as const satisfies Record<string, InboxFilter>;

const InboxesQuery = listQuery({
  q: Type.Optional(text(320)),
  state: Type.Optional(enumOf(['', ...Object.keys(STATES)])),
});
const InboxParams = strictObject({ id: id('Inbox id (inb_…).') });
const NewInbox = strictObject({
  /** Of the form as it was shown: submitting it twice creates one inbox. */
  key: text(64, { minLength: 16 }),
  display_name: singleLineText(255),
  username: text(64),
  domain: text(253),
});
/** Where the form of a change is: on the list, or on a page of the inbox. */
const Back = enumOf(['list', 'mail', 'settings']);

/** The inboxes of the environment: found, created, paused and resumed, deleted. */
export const inboxesPages =
  ({
    pages,
    inboxes,
    domains,
    metrics,
    runOnce,
    config,
  }: InboxesPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    async function showList(
      request: FastifyRequest<{ Querystring: Static<typeof InboxesQuery> }>,
      reply: FastifyReply,
      problem?: AppError,
    ) {
      const { q, state } = request.query;
      const filter: InboxFilter = {
        ...(q?.trim() ? { q } : {}),
        ...(state ? STATES[state as keyof typeof STATES] : {}),
      };
      const page = await inboxes.list(request.scope, filter, pages.readPage(request, { limit: PAGE_SIZE }));
      const activity = request.scope.permissions.has('metrics:read')
        ? await metrics.getInboxActivity(
            request.scope,
            page.items.map((inbox) => inbox.id),
          )
        : undefined;
      return pages.send(request, reply, {
        template: 'inboxes/inboxes',
        title: 'Inboxes',
        problem,
        data: {
          inboxes: page.items.map((inbox) => ({
            ...inbox,
            state: inboxState(inbox),
            activity: activity?.get(inbox.id),
          })),
          q,
          state,
          isFiltered: Object.keys(filter).length > 0,
          next: pages.nextPage(request, page),
        },
        apiCall: {
          path: '/inboxes',
          query: {
            limit: PAGE_SIZE,
            q: filter.q,
            status: filter.status,
            send_paused: filter.sendPaused === undefined ? undefined : String(filter.sendPaused),
          },
        },
      });
    }

    app.get(
      '/inboxes',
      {
        config: { permission: 'inboxes:read' },
        schema: { operationId: 'pages.inboxes', querystring: InboxesQuery },
      },
      (request, reply) => showList(request, reply),
    );

    async function showNew(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const { items } = request.scope.permissions.has('domains:read')
        ? await domains.list(request.scope, { verified: true }, { limit: MAX_DOMAINS, order: 'asc' })
        : { items: [] };
      return pages.send(request, reply, {
        template: 'inboxes/new-inbox',
        title: 'New inbox',
        problem,
        data: {
          key: (request.body as { key?: string } | undefined)?.key ?? randomUUID(),
          sharedDomain: config.MAIL_DOMAIN,
          domains: [config.MAIL_DOMAIN, ...items.map(({ domain }) => domain.domainName)],
        },
        apiCall: {
          method: 'POST',
          path: '/inboxes',
          body: { username: 'my-agent', domain: config.MAIL_DOMAIN, display_name: 'My agent' },
        },
      });
    }

    app.get(
      '/inboxes/new',
      {
        config: { permission: 'inboxes:write' },
        schema: { operationId: 'pages.newInbox', querystring: listQuery({}) },
      },
      (request, reply) => showNew(request, reply),
    );

    pages.form(app, '/inboxes/new', {
      config: { permission: 'inboxes:write' },
      schema: { operationId: 'pages.createInbox', body: NewInbox },
      work({ scope, body: { key, display_name: displayName, username, domain } }) {
        const input = {
          domain,
          ...(username.trim() ? { username: username.trim() } : {}),
          ...(displayName.trim() ? { displayName: displayName.trim() } : {}),
        };
        const submission = { path: '/inboxes/new', credentialId: scope.actor.id, key, content: input };
        return runOnce(scope, submission, async (inner) => (await inboxes.create(inner, input)).inbox.id);
      },
      show: showNew,
      done: (request, reply, created) =>
        pages.seeOther(reply, pages.link(request, `/inboxes/${created}`), 'inbox-created'),
    });

    function seeChanged(
      request: FastifyRequest & { params: { id: string }; body: { back: string } },
      reply: FastifyReply,
      notice: Notice,
    ) {
      const { id } = request.params;
      const page = `/inboxes/${id}`;
      const paths: Record<string, string> = { mail: page, settings: `${page}/settings` };
      const path = paths[request.body.back];
      return path === undefined
        ? pages.seeOther(reply, `${pages.link(request, '/inboxes')}#${id}`, notice)
        : pages.seeOther(reply, pages.link(request, path), notice);
    }

    pages.form(app, '/inboxes/:id/pause', {
      config: { permission: 'inboxes:write' },
      schema: {
        operationId: 'pages.pauseInbox',
        params: InboxParams,
        body: strictObject({ back: Back, reason: singleLineText(500, { minLength: 1 }) }),
      },
      work: ({ scope, params, body }) => inboxes.pause(scope, params.id, body.reason.trim()),
      show: showError,
      done: (request, reply) => seeChanged(request, reply, 'inbox-paused'),
    });

    pages.form(app, '/inboxes/:id/resume', {
      config: { permission: 'inboxes:manage' },
      schema: {
        operationId: 'pages.resumeInbox',
        params: InboxParams,
        body: strictObject({ back: Back }),
      },
      work: ({ scope, params }) => inboxes.resume(scope, params.id),
      show: showError,
      done: (request, reply) => seeChanged(request, reply, 'inbox-resumed'),
    });

    pages.form(app, '/inboxes/:id/delete', {
      config: { permission: 'inboxes:write' },
      schema: {
        operationId: 'pages.deleteInbox',
        params: InboxParams,
        body: strictObject({ purge: Type.Optional(enumOf(['on'])) }),
      },
      work: ({ scope, params, body }) =>
        inboxes.delete(scope, params.id, { purge: body.purge !== undefined }),
      show: showError,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, '/inboxes'), 'inbox-deleted'),
    });

    /** The list with what was wrong: these forms are dialogs of several pages. */
    function showError(request: FastifyRequest, reply: FastifyReply, problem: AppError) {
      return showList(
        request as FastifyRequest<{ Querystring: Static<typeof InboxesQuery> }>,
        reply,
        problem,
      );
    }
    done();
  };
