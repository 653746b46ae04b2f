import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import type { AttachmentService } from '../../domain/attachments/attachment.service.ts';
import type { DraftDetails } from '../../domain/drafts/draft.service.ts';
import type { ReplyService } from '../../domain/outbound/reply.service.ts';
import { invalid } from '../../platform/errors.ts';
import { storeBodyFiles } from '../attachments/body-files.ts';
import { DraftRecord, SCHEDULED_RESPONSE } from '../drafts/drafts.schemas.ts';
import { type AddressInput, addressList } from '../messages/addresses.ts';
import { CONTENT_BODY_LIMIT_BYTES, contentFields, sendAt } from '../messages/content.schemas.ts';
import { readContent, readSendAt } from '../messages/content.ts';
import { type MessageViews, ViewQuery } from '../messages/message-views.ts';
import { MESSAGE_RESPONSE, MessageRecord } from '../messages/messages.schemas.ts';
import { id, postProblems, ref, strictObject } from '../schemas.ts';

const MessageParams = strictObject({ id: id('Message id (msg_…).') });

/** The service derives the subject, and the recipients of a reply. */
const { to: _to, subject: _subject, ...ownFields } = contentFields;
const sharedFields = { ...ownFields, send_at: sendAt };

export const ReplyToMessage = strictObject(
  {
    ...sharedFields,
    reply_all: Type.Optional(
      Type.Boolean({ description: 'Also reply to To and Cc of the original. Default: false.' }),
    ),
  },
  {
    $id: 'ReplyToMessage',
    title: 'ReplyToMessage',
    description: 'Requires text_body or html_body; the original is quoted below.',
  },
);

export const ForwardMessage = strictObject(
  {
    ...sharedFields,
    to: Type.Unsafe<AddressInput[]>({ ...addressList('Recipients.'), minItems: 1 }),
    include_attachments: Type.Optional(
      Type.Boolean({ description: 'Include the files of the original. Default: true.' }),
    ),
  },
  { $id: 'ForwardMessage', title: 'ForwardMessage' },
);

export const replyRoutes =
  ({
    replies,
    attachments,
    messageViews,
  }: {
    replies: ReplyService<DraftDetails>;
    attachments: AttachmentService;
    messageViews: MessageViews;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const prepare = storeBodyFiles(attachments);

    app.post(
      '/messages/:id/reply',
      {
        bodyLimit: CONTENT_BODY_LIMIT_BYTES,
        config: {
          permission: 'messages:send',
          alsoRequires: 'messages:read',
          announcesRefusals: true,
          ...MESSAGE_RESPONSE,
          ...SCHEDULED_RESPONSE,
          prepare,
        },
        schema: {
          operationId: 'messages.reply',
          summary: 'Reply to a message',
          description:
            'Sends in the same thread, to Reply-To or From of the original; a reply to an outbound message is addressed to its recipients. Also requires messages:read.',
          tags: ['Messages'],
          params: MessageParams,
          querystring: ViewQuery,
          body: ref(ReplyToMessage),
          response: { 201: ref(MessageRecord), 202: ref(DraftRecord), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { scope, params, body, filesToAttach: files } = request;
        requireBody(body);
        const { reply_all: replyAll = false, ...content } = body;
        const sent = await replies.reply(scope, params.id, {
          content: readContent(content),
          replyAll,
          files,
          sendAt: readSendAt(body),
        });
        return messageViews.presentSent(request, reply, sent);
      },
    );

    app.post(
      '/messages/:id/forward',
      {
        bodyLimit: CONTENT_BODY_LIMIT_BYTES,
        config: {
          permission: 'messages:send',
          alsoRequires: 'messages:read',
          announcesRefusals: true,
          ...MESSAGE_RESPONSE,
          ...SCHEDULED_RESPONSE,
          prepare,
        },
        schema: {
          operationId: 'messages.forward',
          summary: 'Forward a message',
          description:
            'Sends in a new thread, with the header, body and files of the original. Also requires messages:read.',
          tags: ['Messages'],
          params: MessageParams,
          querystring: ViewQuery,
          body: ref(ForwardMessage),
          response: { 201: ref(MessageRecord), 202: ref(DraftRecord), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { scope, params, body, filesToAttach: files } = request;
        const { include_attachments: includeAttachments = true, ...content } = body;
        const parsedContent = readContent(content);
        const sent = await replies.forward(scope, params.id, {
          content: parsedContent,
          includeAttachments,
          files,
          sendAt: readSendAt(body),
        });
        return messageViews.presentSent(request, reply, sent);
      },
    );
    done();
  };

function requireBody({ text_body: text, html_body: html }: Static<typeof ReplyToMessage>): void {
  if (text?.trim() || html?.trim()) return;
  throw invalid('/body/text_body', 'is required if html_body is empty', 'Set at least one of the two.');
}
