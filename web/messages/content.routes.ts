import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { presentMessage } from '../../api/messages/messages.schemas.ts';
import { id, strictObject, text } from '../../api/schemas.ts';
import type { AttachmentService } from '../../domain/attachments/attachment.service.ts';
import type { MessageService } from '../../domain/messages/message.service.ts';
import type { MessageFrameService } from '../../domain/messages/message-frame.service.ts';
import type { RawMessageService } from '../../domain/messages/raw-message.service.ts';
import { describeUrl } from '../../domain/mime/links/find-links.ts';
import { notFound } from '../../platform/errors.ts';
import { OrganizationQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { sendFrame, sendPlainText } from './frame.ts';
import type { RemoteImages } from './remote-images.ts';

export interface MessageContentDependencies {
  pages: Pages;
  messages: MessageService;
  messageFrames: MessageFrameService;
  rawMessages: RawMessageService;
  attachments: AttachmentService;
  remoteImages: RemoteImages;
}

const MessageParams = strictObject({ id: id('Message id (msg_…).') });
const FileParams = strictObject({
  id: id('Message id (msg_…).'),
  attachmentId: id('Attachment id (att_…).'),
});
const MAX_LINK_NUMBER = 100_000;
const number = (maximum: number) => Type.Optional(Type.Integer({ minimum: 0, maximum }));

/** What strangers wrote, each in an answer of its own that can do nothing to the pages around it. */
export const messageContentPages =
  ({
    pages,
    messages,
    messageFrames,
    rawMessages,
    attachments,
    remoteImages,
  }: MessageContentDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/messages/:id/html',
      {
        config: { permission: 'messages:read' },
        schema: {
          operationId: 'pages.messageFrame',
          params: MessageParams,
          querystring: strictObject({ ...OrganizationQuery.properties, images: Type.Optional(text(100)) }),
        },
      },
      async (request, reply) => {
        const { scope, params, query } = request;
        const allowsRemoteImages = remoteImages.areAllowed(scope, params.id, query.images);
        const { html } = await messageFrames.get(scope, params.id, {
          allowsRemoteImages,
          linkTo: (link) => pages.link(request, `/messages/${params.id}/leave`, { link }),
        });
        return sendFrame(reply, { html, allowsRemoteImages });
      },
    );

    app.get(
      '/messages/:id/leave',
      {
        config: { permission: 'messages:read' },
        schema: {
          operationId: 'pages.leaveMessage',
          params: MessageParams,
          querystring: strictObject({
            ...OrganizationQuery.properties,
            /** Of the HTML. */
            link: number(MAX_LINK_NUMBER),
            /** Of the links that the API returns. */
            found: number(MAX_LINK_NUMBER),
          }),
        },
      },
      async (request, reply) => {
        const { scope, params, query } = request;
        const { message } = await messages.get(scope, params.id, { withAllLinks: true });
        const found = message.allLinks?.[query.found ?? -1];
        const shown =
          query.link === undefined
            ? found && describeUrl(found.url, message.fromEmail)
            : await messageFrames.getLink(scope, params.id, query.link);
        if (!shown) throw notFound('link', String(query.found ?? ''));
        return pages.send(request, reply, {
          template: 'messages/leave',
          title: shown.host === null ? 'Open this link?' : `Leave for ${shown.host}?`,
          data: { shown, message, words: found?.text },
        });
      },
    );

    app.get(
      '/messages/:id/raw',
      {
        config: { permission: 'messages:read' },
        schema: { operationId: 'pages.rawMessage', params: MessageParams, querystring: OrganizationQuery },
      },
      async ({ scope, params }, reply) =>
        sendPlainText(reply, (await rawMessages.open(scope, params.id)).bytes),
    );

    app.get(
      '/messages/:id/json',
      {
        config: { permission: 'messages:read' },
        schema: { operationId: 'pages.messageJson', params: MessageParams, querystring: OrganizationQuery },
      },
      async ({ scope, params }, reply) => {
        const details = await messages.get(scope, params.id, { withAllLinks: true });
        return sendPlainText(reply, JSON.stringify(presentMessage(details), null, 2));
      },
    );

    app.get(
      '/messages/:id/files/:attachmentId',
      {
        config: { permission: 'messages:read' },
        schema: { operationId: 'pages.messageFile', params: FileParams, querystring: OrganizationQuery },
      },
      async ({ scope, params }, reply) => {
        const { attachment, link } = await attachments.get(scope, params.attachmentId);
        if (attachment.messageId !== params.id) throw notFound('attachment', params.attachmentId);
        // Storage answers with content-disposition: attachment.
        return reply.redirect(link.url, 303);
      },
    );
    done();
  };
