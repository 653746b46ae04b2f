import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { ThreadService } from '../../domain/messages/thread.service.ts';
import { type Lists, listOf, PageQuery } from '../lists.ts';
import { enumOf, id, problems, ref, strictObject } from '../schemas.ts';
import { asResponse, isAgentView, type MessageViews } from './message-views.ts';
import { presentThread, presentThreadDetails, ThreadRecord, ThreadSummary } from './threads.schemas.ts';

const InboxParams = strictObject({ inboxId: id('Inbox id (inb_…).') });
const ThreadQuery = strictObject({
  view: enumOf(['summary', 'agent'], {
    default: 'summary',
    description: 'agent: each message is an AgentMessage, with the first 500 characters of its text.',
  }),
});
const ThreadParams = strictObject({ id: id('Thread id (thr_…).') });

export const threadRoutes =
  ({
    threads,
    lists,
    messageViews,
  }: {
    threads: ThreadService;
    lists: Lists;
    messageViews: MessageViews;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/inboxes/:inboxId/threads',
      {
        config: { permission: 'threads:read' },
        schema: {
          operationId: 'threads.list',
          summary: 'List the threads of an inbox',
          tags: ['Threads'],
          params: InboxParams,
          querystring: PageQuery,
          response: { 200: listOf(ref(ThreadSummary)), ...problems() },
        },
      },
      async (request) => {
        const { inboxId } = request.params;
        const page = await threads.list(request.scope, { inboxId }, lists.read(request));
        return lists.present(request, page, presentThread);
      },
    );

    app.get(
      '/threads',
      {
        config: { permission: 'threads:read' },
        schema: {
          operationId: 'threads.listAll',
          summary: 'List the threads of the environment',
          tags: ['Threads'],
          querystring: PageQuery,
          response: { 200: listOf(ref(ThreadSummary)), ...problems() },
        },
      },
      async (request) => {
        const page = await threads.list(request.scope, {}, lists.read(request));
        return lists.present(request, page, presentThread);
      },
    );

    app.get(
      '/threads/:id',
      {
        config: { permission: 'threads:read' },
        schema: {
          operationId: 'threads.get',
          summary: 'Get a thread with its newest messages',
          description:
            'The id of a thread that was merged into another one is an alias: the response is the living thread, with its own id.',
          tags: ['Threads'],
          params: ThreadParams,
          querystring: ThreadQuery,
          response: { 200: ref(ThreadRecord), ...problems() },
        },
      },
      async (request, reply) => {
        const { scope, params, query } = request;
        const details = await threads.get(scope, params.id, query.view);
        if (!isAgentView(request)) return presentThreadDetails(details);
        const messages = await messageViews.presentListed(request, details.messages);
        return asResponse(reply, { ...presentThread(details.thread), messages });
      },
    );
    done();
  };
