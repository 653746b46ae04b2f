import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { enumOf, id, strictObject, text } from '../../api/schemas.ts';
import type { InboxService } from '../../domain/inboxes/inbox.service.ts';
import type { LabelService } from '../../domain/messages/label.service.ts';
import type { MessageService } from '../../domain/messages/message.service.ts';
import { isByRank, MAX_QUERY_LENGTH } from '../../domain/messages/search-query.ts';
import type { ThreadService, ThreadWithLatest } from '../../domain/messages/thread.service.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import type { PageRequest } from '../../platform/pagination.ts';
import { LabelFields, readLabels } from '../messages/label-fields.ts';
import { listQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { inboxState } from './inbox-words.ts';

export interface InboxPageDependencies {
  pages: Pages;
  inboxes: InboxService;
  labels: LabelService;
  messages: MessageService;
  threads: ThreadService;
}

const THREADS_PER_PAGE = 25;
const FOUND_PER_PAGE = 50;
const LIVE_THREADS: PageRequest = { limit: 100, order: 'desc' };
/** Everything that changes what the timeline shows. */
const LIVE_EVENTS = [
  'message.received',
  'message.sent',
  'message.delivered',
  'message.bounced',
  'message.complained',
  'message.rejected',
] as const;

export const InboxParams = strictObject({ id: id('Inbox id (inb_…).') });
const InboxQuery = listQuery({
  q: Type.Optional(text(MAX_QUERY_LENGTH)),
  label: Type.Optional(text(64)),
  direction: Type.Optional(enumOf(['', 'inbound', 'outbound'])),
});
/** Of the messages that a page shows. */
const Ids = Type.Union([
  id('Message id (msg_…).'),
  Type.Array(id('Message id (msg_…).'), { minItems: 1, maxItems: 100, uniqueItems: true }),
]);
type InboxRequest = FastifyRequest<{ Querystring: Static<typeof InboxQuery>; Params: { id: string } }>;

/** One inbox: its mail by thread, live, and what a search of it finds. */
export const inboxPages =
  ({ pages, inboxes, labels, messages, threads }: InboxPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    async function findTimeline(request: InboxRequest) {
      const page = await threads.listWithLatest(
        request.scope,
        { inboxId: request.params.id },
        pages.readPage(request, { limit: THREADS_PER_PAGE }),
      );
      return { threads: page.items, next: pages.nextPage(request, page) };
    }

    async function search(request: InboxRequest) {
      const { q, label, direction } = request.query;
      const page = await messages.list(
        request.scope,
        {
          inboxId: request.params.id,
          ...(q ? { q } : {}),
          ...(label ? { label } : {}),
          ...(direction ? { direction: direction as 'inbound' | 'outbound' } : {}),
        },
        pages.readPage(request, { limit: FOUND_PER_PAGE }),
        'compact',
      );
      return { found: page.items.map(({ message }) => message), next: pages.nextPage(request, page) };
    }

    /** What the person searches for may be no valid search, which is said at the field. */
    async function searchOrProblem(request: InboxRequest) {
      try {
        return { ...(await search(request)), problem: undefined };
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'validation_error') throw error;
        return { found: [], next: undefined, problem: error };
      }
    }

    function liveSource(
      request: FastifyRequest,
      inboxId: string,
      { threads: shown = [], next }: { threads?: ThreadWithLatest[]; next?: string | undefined },
    ): string {
      const since = next === undefined ? undefined : shown.at(-1)?.thread.lastMessageAt.toISOString();
      return pages.link(request, `/inboxes/${inboxId}/live`, { since });
    }

    async function show(request: InboxRequest, reply: FastifyReply, refused?: AppError) {
      const { q, label, direction, cursor } = request.query;
      const inbox = await inboxes.getWithMail(request.scope, request.params.id);
      const isSearch = Boolean(q || label || direction);
      const { problem, ...listed } = isSearch
        ? await searchOrProblem(request)
        : { ...(await findTimeline(request)), problem: undefined };
      return pages.send(request, reply, {
        template: 'inboxes/inbox',
        title: inbox.email,
        problem: refused ?? problem,
        data: {
          heading: inbox.displayName || inbox.email,
          inbox: { ...inbox, state: inboxState(inbox) },
          query: { q, label, direction },
          isLabelRefused: refused !== undefined,
          selected: new Set([(request.body as { ids?: string | string[] } | undefined)?.ids ?? []].flat()),
          isSearch,
          isByRank: !problem && isByRank(q),
          liveSource: isSearch || cursor ? undefined : liveSource(request, inbox.id, listed),
          ...listed,
        },
        apiCall: isSearch
          ? { path: `/inboxes/${inbox.id}/messages`, query: { q, label, direction, limit: FOUND_PER_PAGE } }
          : { path: `/inboxes/${inbox.id}/threads`, query: { limit: THREADS_PER_PAGE } },
      });
    }

    app.get(
      '/inboxes/:id',
      {
        config: { permission: 'messages:read' },
        schema: { operationId: 'pages.inbox', params: InboxParams, querystring: InboxQuery },
      },
      (request, reply) => show(request as InboxRequest, reply),
    );

    app.get(
      '/inboxes/:id/live',
      {
        config: { permission: 'messages:read', heldOpen: true },
        exposeHeadRoute: false,
        schema: {
          operationId: 'pages.inboxLive',
          params: InboxParams,
          querystring: listQuery({ since: Type.Optional(text(40, { format: 'date-time' })) }),
        },
      },
      async (request, reply) => {
        const { scope, params, query } = request;
        const inbox = await inboxes.getWithMail(scope, params.id);
        const since = query.since === undefined ? undefined : new Date(query.since);
        return pages.live(request, reply, {
          types: [...LIVE_EVENTS],
          inboxIds: [inbox.id],
          render: async () => {
            const { items } = await threads.listWithLatest(scope, { inboxId: inbox.id }, LIVE_THREADS);
            // The threads of the first page, and the newer ones: the link to older threads follows after the former.
            const shown = items.filter(({ thread }) => since === undefined || thread.lastMessageAt >= since);
            return pages.part(request, 'inboxes/timeline', { inbox, threads: shown });
          },
        });
      },
    );
    pages.form(app, '/inboxes/:id/labels', {
      config: { permission: 'messages:write' },
      schema: {
        operationId: 'pages.labelInboxMessages',
        params: InboxParams,
        querystring: InboxQuery,
        body: strictObject({ ids: Type.Optional(Ids), ...LabelFields }),
      },
      async work({ scope, params, body }) {
        const ids = [body.ids ?? []].flat();
        if (ids.length === 0)
          throw invalid('/body/ids', 'has no message', 'Select the messages to label first.');
        await inboxes.getWithMail(scope, params.id);
        const refusals = await labels.changeMany(scope, ids, readLabels(body));
        const refused = refusals.filter((refusal) => refusal !== undefined);
        if (refused.length > 0) throw severalRefused(refused, ids.length);
      },
      show: (request, reply, problem) => show(request as unknown as InboxRequest, reply, problem),
      done(request, reply) {
        const { q, label, direction } = request.query as Static<typeof InboxQuery>;
        const path = pages.link(request, `/inboxes/${request.params.id}`, { q, label, direction });
        return pages.seeOther(reply, path, 'labels-changed');
      },
    });
    done();
  };

/** The other messages have their labels. */
function severalRefused([first]: AppError[], count: number): AppError {
  const { code, detail, fix } = first as AppError;
  return count === 1
    ? (first as AppError)
    : new AppError(code, { detail: `Some of the ${count} messages were not changed: ${detail}`, fix });
}
