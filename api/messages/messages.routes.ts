import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { Static } from 'typebox';
import type { AttachmentService } from '../../domain/attachments/attachment.service.ts';
import type { DraftDetails, DraftService } from '../../domain/drafts/draft.service.ts';
import type { MessageService } from '../../domain/messages/message.service.ts';
import type { MessageFilter } from '../../domain/messages/message-filter.ts';
import type { SendService } from '../../domain/outbound/send.service.ts';
import { storeBodyFiles } from '../attachments/body-files.ts';
import { DraftRecord, presentDraft, SCHEDULED_RESPONSE } from '../drafts/drafts.schemas.ts';
import type { Lists } from '../lists.ts';
import { listOf } from '../lists.ts';
import { id, postProblems, problems, ref, strictObject } from '../schemas.ts';
import { parseTime } from '../time.ts';
import { readAddressFilter } from './address-filter.schemas.ts';
import { CONTENT_BODY_LIMIT_BYTES } from './content.schemas.ts';
import { readContent, readSendAt } from './content.ts';
import { MessageViewQuery, type MessageViews, ViewQuery } from './message-views.ts';
import {
  MESSAGE_RESPONSE,
  MessageListItem,
  MessageQuery,
  MessageRecord,
  SendMessage,
} from './messages.schemas.ts';

const InboxParams = strictObject({ inboxId: id('Inbox id (inb_…).') });
const MessageParams = strictObject({ id: id('Message id (msg_…).') });

export const messageRoutes =
  ({
    messages,
    sends,
    drafts,
    attachments,
    lists,
    messageViews,
  }: {
    messages: MessageService;
    sends: SendService<DraftDetails>;
    drafts: DraftService;
    attachments: AttachmentService;
    lists: Lists;
    messageViews: MessageViews;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/inboxes/:inboxId/messages',
      {
        bodyLimit: CONTENT_BODY_LIMIT_BYTES,
        config: {
          permission: 'messages:send',
          announcesRefusals: true,
          ...MESSAGE_RESPONSE,
          ...SCHEDULED_RESPONSE,
          prepare: storeBodyFiles(attachments),
        },
        schema: {
          operationId: 'messages.send',
          summary: 'Send a message',
          tags: ['Messages'],
          params: InboxParams,
          querystring: ViewQuery,
          body: ref(SendMessage),
          response: { 201: ref(MessageRecord), 202: ref(DraftRecord), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { scope, params, body, filesToAttach } = request;
        const content = readContent(body);
        const sendAt = readSendAt(body);
        if (sendAt) {
          const scheduled = { ...content, sendAt, files: filesToAttach };
          reply.code(202);
          return presentDraft(await drafts.schedule(scope, params.inboxId, scheduled));
        }
        return messageViews.presentSent(
          request,
          reply,
          await sends.send(scope, params.inboxId, content, filesToAttach),
        );
      },
    );

    app.get(
      '/inboxes/:inboxId/messages',
      {
        config: { permission: 'messages:read' },
        schema: {
          operationId: 'messages.list',
          summary: 'List the messages of an inbox',
          description:
            'Newest first. For what arrived after a message that you know: GET /api/v1/inboxes/{id}/messages/wait?since={message id}.',
          tags: ['Messages'],
          params: InboxParams,
          querystring: MessageQuery,
          response: { 200: listOf(ref(MessageListItem)), ...problems() },
        },
      },
      async (request, reply) => {
        const filter = { ...readFilter(request.query), inboxId: request.params.inboxId };
        const { view } = request.query;
        const page = await messages.list(request.scope, filter, lists.read(request), view);
        return messageViews.presentList(request, reply, page);
      },
    );

    app.get(
      '/messages',
      {
        config: { permission: 'messages:read' },
        schema: {
          operationId: 'messages.listAll',
          summary: 'List the messages of the environment',
          tags: ['Messages'],
          querystring: MessageQuery,
          response: { 200: listOf(ref(MessageListItem)), ...problems() },
        },
      },
      async (request, reply) => {
        const { view } = request.query;
        const page = await messages.list(request.scope, readFilter(request.query), lists.read(request), view);
        return messageViews.presentList(request, reply, page);
      },
    );

    app.get(
      '/messages/:id',
      {
        config: { permission: 'messages:read' },
        schema: {
          operationId: 'messages.get',
          summary: 'Get a message',
          tags: ['Messages'],
          params: MessageParams,
          querystring: MessageViewQuery,
          response: { 200: ref(MessageRecord), ...problems() },
        },
      },
      async (request, reply) => {
        const withAllLinks = request.query.links === 'all';
        const details = await messages.get(request.scope, request.params.id, { withAllLinks });
        return messageViews.presentRead(request, reply, details);
      },
    );

    app.post(
      '/messages/:id/cancel',
      {
        config: { permission: 'messages:send', ...MESSAGE_RESPONSE },
        schema: {
          operationId: 'messages.cancel',
          summary: 'Cancel a message, or its recipients that have not been transmitted to',
          tags: ['Messages'],
          params: MessageParams,
          querystring: ViewQuery,
          response: { 200: ref(MessageRecord), ...postProblems() },
        },
      },
      async (request, reply) =>
        messageViews.present(request, reply, await sends.cancel(request.scope, request.params.id)),
    );
    done();
  };

function readFilter(query: Static<typeof MessageQuery>): MessageFilter {
  const { direction, status, label, thread_id, from, to, subject, has_attachments, before, after, q } = query;
  return {
    direction,
    status,
    label,
    threadId: thread_id,
    from: readAddressFilter('from', from),
    to: readAddressFilter('to', to),
    subject,
    hasAttachments: has_attachments,
    q,
    before: before === undefined ? undefined : parseTime('/query/before', before),
    after: after === undefined ? undefined : parseTime('/query/after', after),
  };
}
