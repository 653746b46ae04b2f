import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { enumOf, id, strictObject, text } from '../../api/schemas.ts';
import type { SuppressionService } from '../../domain/deliverability/suppression.service.ts';
import type { DraftDetails } from '../../domain/drafts/draft.service.ts';
import type { InboxService } from '../../domain/inboxes/inbox.service.ts';
import type { AgentMessageService } from '../../domain/messages/agent-message.service.ts';
import type { AlarmService } from '../../domain/messages/alarm.service.ts';
import { type DeletionService, IN_FLIGHT_STATUSES } from '../../domain/messages/deletion.service.ts';
import type { LabelService } from '../../domain/messages/label.service.ts';
import { isAuthenticated } from '../../domain/messages/message.entity.ts';
import type { MessageService } from '../../domain/messages/message.service.ts';
import type { MessageDetails } from '../../domain/messages/message-details.ts';
import type { MessageFrameService } from '../../domain/messages/message-frame.service.ts';
import type { MessageTimelineService } from '../../domain/messages/message-timeline.service.ts';
import type { SendService } from '../../domain/outbound/send.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { idFromBytes, idToBytes } from '../../platform/ids.ts';
import { receiveMessageWorkflowId } from '../../workflows/inbound/receive-message.contract.ts';
import { sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import { OrganizationQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { LabelFields, readLabels } from './label-fields.ts';
import type { RemoteImages } from './remote-images.ts';
import {
  CONFIDENCE_WORDS,
  describeRecipients,
  describeStep,
  LINK_WORDS,
  RULE_WORDS,
  SIGNAL_WORDS,
  shortenExcerpt,
} from './words.ts';

export interface MessagePageDependencies {
  pages: Pages;
  messages: MessageService;
  inboxes: InboxService;
  messageFrames: MessageFrameService;
  messageTimelines: MessageTimelineService;
  agentMessages: AgentMessageService;
  alarms: AlarmService;
  labels: LabelService;
  deletions: DeletionService;
  sends: SendService<DraftDetails>;
  remoteImages: RemoteImages;
  suppressions: SuppressionService;
}

const MessageParams = strictObject({ id: id('Message id (msg_…).') });
const MessageQuery = strictObject({
  ...OrganizationQuery.properties,
  show: Type.Optional(enumOf(['text', 'html', 'headers'])),
  images: Type.Optional(text(100)),
});
/** The parts of a page that change while the message is sent. */
const ProgressQuery = strictObject({
  ...OrganizationQuery.properties,
  part: enumOf(['delivery', 'steps']),
});
/** More is in the raw message. */
const SHOWN_CHARACTERS = 200_000;

/** One message with all that the service knows about it, and what a person can do with it. */
export const messagePages =
  (dependencies: MessagePageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, messages, alarms, labels, deletions, sends, remoteImages, suppressions } = dependencies;
    const show = createMessagePage(dependencies);
    const pathOf = (request: FastifyRequest, query = {}) =>
      pages.link(request, `/messages/${(request.params as { id: string }).id}`, query);

    app.get(
      '/messages/:id',
      {
        config: { permission: 'messages:read' },
        schema: { operationId: 'pages.message', params: MessageParams, querystring: MessageQuery },
      },
      async (request, reply) => show(request, reply),
    );

    app.get(
      '/messages/:id/progress',
      {
        config: { permission: 'messages:read' },
        schema: { operationId: 'pages.messageProgress', params: MessageParams, querystring: ProgressQuery },
      },
      async (request, reply) => {
        const progress = await readProgress(
          dependencies,
          request,
          await messages.get(request.scope, request.params.id),
        );
        return reply
          .type('text/html; charset=utf-8')
          .header('cache-control', 'no-store')
          .send(pages.part(request, `messages/${request.query.part}`, progress));
      },
    );

    pages.form(app, '/messages/:id/images', {
      config: { permission: 'messages:read' },
      schema: { operationId: 'pages.showImages', params: MessageParams, body: strictObject({}) },
      work: async ({ scope, params }) => remoteImages.allow(scope, params.id),
      show,
      done: (request, reply, images) => pages.seeOther(reply, pathOf(request, { show: 'html', images })),
    });

    pages.form(app, '/messages/:id/labels', {
      config: { permission: 'messages:write' },
      schema: { operationId: 'pages.labelMessage', params: MessageParams, body: strictObject(LabelFields) },
      work: async ({ scope, params, body }) => {
        const [refusal] = await labels.changeMany(scope, [params.id], readLabels(body));
        if (refusal) throw refusal;
      },
      show,
      done: (request, reply) => pages.seeOther(reply, pathOf(request), 'labels-changed'),
    });

    pages.form(app, '/messages/:id/cancel', {
      config: { permission: 'messages:send' },
      schema: { operationId: 'pages.cancelMessage', params: MessageParams, body: strictObject({}) },
      work: ({ scope, params }) => sends.cancel(scope, params.id),
      show,
      done: (request, reply) => pages.seeOther(reply, pathOf(request), 'message-canceled'),
    });

    pages.form(app, '/messages/:id/lift-suppression', {
      config: { permission: 'suppressions:manage' },
      schema: {
        operationId: 'pages.liftSuppressionOfMessage',
        params: MessageParams,
        body: strictObject({ email: text(320), reason: text(500) }),
      },
      work: ({ scope, body: { email, reason } }) =>
        suppressions.remove(scope, email, reason.trim() || undefined),
      show,
      done: (request, reply) =>
        pages.seeOther(reply, pathOf(request), 'suppression-lifted', request.body.email),
    });

    pages.form(app, '/messages/:id/delete', {
      config: { permission: 'messages:write' },
      schema: { operationId: 'pages.deleteMessage', params: MessageParams, body: strictObject({}) },
      work: ({ scope, params }) => deletions.deleteMessage(scope, params.id),
      show,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, '/messages'), 'message-deleted'),
    });

    pages.form(app, '/messages/:id/dismiss-alarm', {
      config: { permission: 'messages:approve' },
      schema: { operationId: 'pages.dismissMessageAlarm', params: MessageParams, body: strictObject({}) },
      work: ({ scope, params }) => alarms.dismiss(scope, params.id),
      show,
      done: (request, reply, dismissed) =>
        pages.seeOther(
          reply,
          dismissed ? pathOf(request) : pages.link(request, '/messages'),
          'alarm-dismissed',
        ),
    });
    done();
  };

/** What changes while the message is sent. */
async function readProgress(
  { messageTimelines, agentMessages }: MessagePageDependencies,
  { scope }: FastifyRequest,
  details: MessageDetails,
) {
  const { message } = details;
  const [timeline, isSuppressed] = await Promise.all([
    messageTimelines.get(scope, message.id),
    agentMessages.findSuppressed(scope, [details]),
  ]);
  return {
    message,
    recipients: describeRecipients(details, (email) => isSuppressed(message, email)),
    steps: timeline.steps.map(describeStep),
    isTruncated: timeline.isTruncated,
    isInFlight: IN_FLIGHT_STATUSES.includes(message.status),
  };
}

function createMessagePage(dependencies: MessagePageDependencies) {
  const { pages, messages, inboxes, messageFrames, agentMessages, remoteImages } = dependencies;

  /** What the HTML tab shows. The frame itself loads from an address of its own. */
  async function readFrame(request: FastifyRequest, messageId: string) {
    const { scope } = request;
    const { images } = request.query as { images?: string };
    const allowsRemoteImages = remoteImages.areAllowed(scope, messageId, images);
    const { html, hasRemoteImages } = await messageFrames.get(scope, messageId, {
      allowsRemoteImages,
      linkTo: () => '',
    });
    return {
      isReadable: html !== null,
      allowsRemoteImages,
      hasRemoteImages,
      source: pages.link(request, `/messages/${messageId}/html`, {
        images: allowsRemoteImages ? images : undefined,
      }),
    };
  }

  return async function show(
    request: FastifyRequest,
    reply: FastifyReply,
    problem?: AppError,
  ): Promise<FastifyReply> {
    const { scope } = request;
    const { id: messageId } = request.params as { id: string };
    const { show: tab = 'text' } = request.query as { show?: 'text' | 'html' | 'headers' };
    const details = await messages.get(scope, messageId, { withAllLinks: true });
    const [inbox, progress, content, frame] = await Promise.all([
      inboxes.getWithMail(scope, details.message.inboxId),
      readProgress(dependencies, request, details),
      agentMessages.readText(details.message, {
        format: 'text',
        offset: 0,
        maxCharacters: SHOWN_CHARACTERS,
      }),
      tab === 'html' ? readFrame(request, messageId) : undefined,
    ]);
    const { message, attachments } = details;
    return pages.send(request, reply, {
      template: 'messages/message',
      title: message.subject || '(no subject)',
      problem,
      data: {
        ...progress,
        attachments,
        isInboxDeleted: inbox.deletedAt !== null,
        tab,
        frame,
        content,
        quoted: findQuoted(message.textBody, content.text),
        isAuthenticated: message.authentication && isAuthenticated(message.authentication),
        workflowId: scope.impersonation ? workflowIdOf(details) : undefined,
        words: {
          confidences: CONFIDENCE_WORDS,
          links: LINK_WORDS,
          rules: RULE_WORDS,
          signals: SIGNAL_WORDS,
          shortenExcerpt,
        },
      },
      apiCall: { path: `/messages/${messageId}`, query: { links: 'all' } },
    });
  };
}

/** The whole text body, if it says more than the new text. */
export function findQuoted(textBody: string | null | undefined, newText: string): string | undefined {
  const squeeze = (value: string) => value.replace(/\s+/g, ' ').trim();
  const whole = textBody?.slice(0, SHOWN_CHARACTERS);
  return whole && squeeze(whole) !== squeeze(newText) ? whole : undefined;
}

function workflowIdOf({ message: { id: messageId, direction } }: MessageDetails): string {
  // A received message has the same UUID as its receipt.
  if (direction === 'inbound') return receiveMessageWorkflowId(idFromBytes('receipt', idToBytes(messageId)));
  return sendMessageWorkflowId(messageId);
}
