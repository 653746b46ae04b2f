import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { enumOf, id, strictObject, text } from '../../api/schemas.ts';
import type { InboxService } from '../../domain/inboxes/inbox.service.ts';
import type { LabelService } from '../../domain/messages/label.service.ts';
import { MESSAGE_STATUSES } from '../../domain/messages/message.entity.ts';
import type { MessageService } from '../../domain/messages/message.service.ts';
import type { MessageFilter } from '../../domain/messages/message-filter.ts';
import { isByRank, MAX_QUERY_LENGTH } from '../../domain/messages/search-query.ts';
import { AppError } from '../../platform/errors.ts';
import { listQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { LabelFields, readLabels } from './label-fields.ts';

export interface MessagesPageDependencies {
  pages: Pages;
  messages: MessageService;
  labels: LabelService;
  inboxes: InboxService;
}

const PAGE_SIZE = 50;
/** Inboxes to choose from; others are reached by their own page. */
const LISTED_INBOXES = 100;
const MessagesQuery = listQuery({
  q: Type.Optional(text(MAX_QUERY_LENGTH)),
  direction: Type.Optional(enumOf(['', 'inbound', 'outbound'])),
  status: Type.Optional(enumOf(['', ...MESSAGE_STATUSES])),
  label: Type.Optional(text(64)),
  inbox_id: Type.Optional(text(128)),
  thread_id: Type.Optional(text(128)),
});
type Filters = Partial<Static<typeof MessagesQuery>>;

const Ids = Type.Union([
  id('Message id (msg_…).'),
  Type.Array(id('Message id (msg_…).'), { minItems: 1, maxItems: PAGE_SIZE, uniqueItems: true }),
]);

/** Search over the messages of all inboxes, and labels for several of them at once. */
export const messagesPages =
  ({ pages, messages, labels, inboxes }: MessagesPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    async function show(
      request: FastifyRequest,
      reply: FastifyReply,
      problem?: AppError,
    ): Promise<FastifyReply> {
      const { scope } = request;
      const filters = request.query as Filters;
      const filter = readFilter(filters);
      const [{ found, rejection }, listed] = await Promise.all([
        find(request, filter),
        inboxes.list(scope, {}, { limit: LISTED_INBOXES, order: 'desc' }),
      ]);
      const { direction, status, label, inbox_id, thread_id, q } = filters;
      return pages.send(request, reply, {
        template: 'messages/messages',
        title: 'Messages',
        problem: problem ?? rejection,
        data: {
          messages: found.items.map(({ message }) => message),
          next: rejection ? undefined : pages.nextPage(request, found),
          inboxes: new Map(listed.items.map(({ id: inboxId, email }) => [inboxId, email])),
          filters: { direction, status, label, inbox_id, thread_id, q },
          hasFilter: Object.values(filter).some((value) => value !== undefined),
          statuses: MESSAGE_STATUSES,
          isByRank: !rejection && isByRank(filter.q),
        },
        apiCall: {
          path: filter.inboxId ? `/inboxes/${filter.inboxId}/messages` : '/messages',
          query: { q, direction, status, label, thread_id, limit: PAGE_SIZE },
        },
      });
    }

    /** A search with a wrong operator shows what is wrong, in place of messages. */
    async function find(request: FastifyRequest, filter: MessageFilter) {
      try {
        const page = pages.readPage(request, { limit: PAGE_SIZE });
        return { found: await messages.list(request.scope, filter, page, 'compact'), rejection: undefined };
      } catch (error) {
        if (!(error instanceof AppError) || error.status >= 500) throw error;
        return { found: { items: [], next: null }, rejection: error };
      }
    }

    app.get(
      '/messages',
      {
        config: { permission: 'messages:read' },
        schema: { operationId: 'pages.messages', querystring: MessagesQuery },
      },
      async (request, reply) => show(request, reply),
    );

    pages.form(app, '/messages/labels', {
      config: { permission: 'messages:write' },
      schema: {
        operationId: 'pages.labelMessages',
        querystring: MessagesQuery,
        body: strictObject({ ids: Ids, ...LabelFields }),
      },
      work: async ({ scope, body }) => {
        const refusals = await labels.changeMany(scope, [body.ids].flat(), readLabels(body));
        const refusal = refusals.find((each) => each !== undefined);
        if (refusal) throw refusal;
      },
      show,
      done: (request, reply) => {
        const { notice: _notice, ...query } = request.query as Filters;
        return pages.seeOther(reply, pages.link(request, '/messages', query), 'labels-changed');
      },
    });
    done();
  };

const readFilter = ({ q, direction, status, label, inbox_id, thread_id }: Filters): MessageFilter => ({
  q: q?.trim() || undefined,
  direction: direction || undefined,
  status: status || undefined,
  label: label?.trim() || undefined,
  inboxId: inbox_id || undefined,
  threadId: thread_id || undefined,
});
