import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { id, strictObject } from '../../api/schemas.ts';
import type { InboxService } from '../../domain/inboxes/inbox.service.ts';
import type { AgentMessageService } from '../../domain/messages/agent-message.service.ts';
import type { DeletionService } from '../../domain/messages/deletion.service.ts';
import type { LabelService } from '../../domain/messages/label.service.ts';
import { isAuthenticated } from '../../domain/messages/message.entity.ts';
import type { MessageDetails } from '../../domain/messages/message-details.ts';
import { MAX_THREAD_MESSAGES, type ThreadService } from '../../domain/messages/thread.service.ts';
import { mapConcurrently } from '../../platform/concurrency/map-concurrently.ts';
import type { AppError } from '../../platform/errors.ts';
import { OrganizationQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { LabelFields, readLabels } from './label-fields.ts';
import { findQuoted } from './message.routes.ts';
import { describeRecipients, SIGNAL_WORDS } from './words.ts';

export interface ThreadPageDependencies {
  pages: Pages;
  threads: ThreadService;
  inboxes: InboxService;
  agentMessages: AgentMessageService;
  labels: LabelService;
  deletions: DeletionService;
}

const ThreadParams = strictObject({ id: id('Thread id (thr_…).') });
const SHOWN_CHARACTERS = 20_000;
const MAX_CONCURRENT_TEXTS = 4;

/** A conversation: the new text of each message, with its quotes folded. */
export const threadPages =
  ({
    pages,
    threads,
    inboxes,
    agentMessages,
    labels,
    deletions,
  }: ThreadPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    async function show(
      request: FastifyRequest,
      reply: FastifyReply,
      problem?: AppError,
    ): Promise<FastifyReply> {
      const { scope } = request;
      const { id: threadId } = request.params as { id: string };
      const { thread, messages } = await threads.get(scope, threadId, 'conversation');
      // An alias of a merged thread.
      if (thread.id !== threadId) return pages.seeOther(reply, pages.link(request, `/threads/${thread.id}`));
      const [inbox, isSuppressed] = await Promise.all([
        inboxes.getWithMail(scope, thread.inboxId),
        agentMessages.findSuppressed(scope, messages),
      ]);
      const shown = await mapConcurrently(messages, MAX_CONCURRENT_TEXTS, async (details: MessageDetails) => {
        const { message, attachments } = details;
        const content = await agentMessages.readText(message, {
          format: 'text',
          offset: 0,
          maxCharacters: SHOWN_CHARACTERS,
        });
        return {
          message,
          attachments,
          content,
          quoted: findQuoted(message.textBody, content.text),
          isAuthenticated: message.authentication && isAuthenticated(message.authentication),
          recipients: describeRecipients(details, (email) => isSuppressed(message, email)),
        };
      });
      return pages.send(request, reply, {
        template: 'messages/thread',
        title: thread.subject || '(no subject)',
        problem,
        data: {
          thread,
          shown,
          isInboxDeleted: inbox.deletedAt !== null,
          hasEarlier: messages.length < thread.messageCount,
          maxMessages: MAX_THREAD_MESSAGES,
          words: { signals: SIGNAL_WORDS },
        },
        apiCall: { path: `/threads/${thread.id}` },
      });
    }

    app.get(
      '/threads/:id',
      {
        config: { permission: 'threads:read' },
        schema: { operationId: 'pages.thread', params: ThreadParams, querystring: OrganizationQuery },
      },
      async (request, reply) => show(request, reply),
    );

    pages.form(app, '/threads/:id/labels', {
      config: { permission: 'messages:write' },
      schema: { operationId: 'pages.labelThread', params: ThreadParams, body: strictObject(LabelFields) },
      work: async ({ scope, params, body }) => {
        const change = readLabels(body);
        const { messages } = await threads.get(scope, params.id);
        const ids = messages.map(({ message }) => message.id);
        const refusals = await labels.changeMany(scope, ids, change);
        const refusal = refusals.find((each) => each !== undefined);
        if (refusal) throw refusal;
      },
      show,
      done: (request, reply) =>
        pages.seeOther(reply, pages.link(request, `/threads/${request.params.id}`), 'labels-changed'),
    });

    pages.form(app, '/threads/:id/delete', {
      config: { permission: 'messages:write' },
      schema: { operationId: 'pages.deleteThread', params: ThreadParams, body: strictObject({}) },
      work: ({ scope, params }) => deletions.deleteThread(scope, params.id),
      show,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, '/messages'), 'thread-deleted'),
    });
    done();
  };
