import { randomUUID } from 'node:crypto';
import multipart from '@fastify/multipart';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { enumOf, text } from '../../api/schemas.ts';
import type { AttachmentService } from '../../domain/attachments/attachment.service.ts';
import type { DraftDetails, DraftService } from '../../domain/drafts/draft.service.ts';
import { requirePermission, type Scope } from '../../domain/identity/scope.ts';
import type { InboxService } from '../../domain/inboxes/inbox.service.ts';
import { ownAddresses } from '../../domain/inboxes/inbox-aliases.ts';
import type { MessageService } from '../../domain/messages/message.service.ts';
import type { MessageDetails } from '../../domain/messages/message-details.ts';
import type { ReplyService } from '../../domain/outbound/reply.service.ts';
import { findReplyRecipients } from '../../domain/outbound/reply-recipients.ts';
import type { SendService } from '../../domain/outbound/send.service.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import type { RunOnce } from '../../platform/idempotency/run-once.ts';
import { FORM_LIMITS, MAX_FORM_FILES } from '../shell/form-with-files.ts';
import { listQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import {
  atField,
  COMPOSE_MODES,
  ComposeBody,
  type ComposeForm,
  type ComposeMode,
  keptFiles,
  readComposed,
  readSendTime,
  toFilesToAttach,
} from './compose-form.ts';
import { InboxParams } from './inbox.routes.ts';
import { inboxState } from './inbox-words.ts';

export interface ComposePageDependencies {
  pages: Pages;
  inboxes: InboxService;
  messages: MessageService;
  sends: SendService<DraftDetails>;
  replies: ReplyService<DraftDetails>;
  drafts: DraftService;
  attachments: AttachmentService;
  runOnce: RunOnce;
}

const TITLES: Record<ComposeMode, string> = {
  new: 'New message',
  reply: 'Reply',
  reply_all: 'Reply to all',
  forward: 'Forward',
};

type ComposeRequest = FastifyRequest & { params: { id: string }; body: ComposeForm };

/** A message to write: new, an answer, or one to forward. It is sent, scheduled, or kept as a draft. */
export const composePages =
  (dependencies: ComposePageDependencies): FastifyPluginAsyncTypebox =>
  async (app) => {
    const { pages, inboxes, messages, attachments, runOnce } = dependencies;
    await app.register(multipart, { limits: FORM_LIMITS, throwFileSizeLimit: false });

    /** @throws AppError `not_found`, also for a message of another inbox. */
    async function findOriginal(scope: Scope, inboxId: string, messageId: string) {
      const { message } = await messages.get(scope, messageId);
      if (message.inboxId !== inboxId) throw notFound('message', messageId);
      return message;
    }

    async function show(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const { scope } = request;
      const { id } = request.params as { id: string };
      const query = request.query as { reply_to?: string; mode?: ComposeMode };
      const form = (request.body ?? {}) as Partial<ComposeForm>;
      const inbox = await inboxes.get(scope, id);
      const originalId = form.original ?? query.reply_to ?? '';
      const original = originalId === '' ? undefined : await findOriginal(scope, id, originalId);
      const asked = form.mode ?? query.mode;
      const mode: ComposeMode = original ? (isAnswer(asked) ? asked : 'reply') : 'new';
      return pages.send(request, reply, {
        template: 'inboxes/compose',
        title: TITLES[mode],
        problem,
        data: {
          inbox: { ...inbox, state: inboxState(inbox) },
          mode,
          original,
          recipients: original && mode !== 'forward' ? listReplyRecipients(original, inbox, mode) : undefined,
          key: form.key ?? randomUUID(),
          kept: keptFiles(form),
          maxFiles: MAX_FORM_FILES,
        },
        apiCall: toApiCall(id, mode, originalId),
      });
    }

    app.get(
      '/inboxes/:id/compose',
      {
        config: { permission: 'messages:send', alsoRequires: 'messages:read' },
        schema: {
          operationId: 'pages.compose',
          params: InboxParams,
          querystring: listQuery({
            reply_to: Type.Optional(text(64)),
            mode: Type.Optional(enumOf(['', ...COMPOSE_MODES])),
          }),
        },
      },
      (request, reply) => show(request, reply),
    );

    pages.form(app, '/inboxes/:id/compose', {
      config: {
        permission: 'messages:send',
        alsoRequires: 'messages:read',
        bodyIsStreamed: 'form',
        storeFormFile({ scope, params }, metadata, content) {
          requirePermission(scope, 'drafts:write');
          return attachments.storeUpload(scope, (params as { id: string }).id, metadata, content);
        },
      },
      schema: {
        operationId: 'pages.sendComposed',
        params: InboxParams,
        querystring: listQuery({
          reply_to: Type.Optional(text(64)),
          mode: Type.Optional(enumOf(['', ...COMPOSE_MODES])),
        }),
        body: ComposeBody,
      },
      async work(request: ComposeRequest) {
        await keepFiles(request);
        if (request.formFailure) throw request.formFailure;
        const { scope, params, body } = request;
        const { key, attachments: _kept, ...fields } = body;
        const content = {
          fields,
          files: request.formFiles?.map(({ filename, sha256 }) => [
            filename,
            Buffer.from(sha256).toString('hex'),
          ]),
          kept: request.formFiles ? undefined : _kept,
        };
        const submission = {
          path: `/inboxes/${params.id}/compose`,
          credentialId: scope.actor.id,
          key,
          content,
        };
        return runOnce(scope, submission, (inner) => submit(inner, params.id, body)).catch(
          (error: unknown) => {
            throw atField(error);
          },
        );
      },
      show,
      done: (request, reply, created) => {
        const isMessage = created.startsWith('msg_');
        const { action, send_at: sendAt } = request.body;
        const notice = isMessage
          ? 'message-queued'
          : action === 'draft'
            ? 'draft-saved'
            : sendAt === ''
              ? 'message-waits'
              : 'message-scheduled';
        const path = isMessage ? `/messages/${created}` : `/drafts/${created}`;
        return pages.seeOther(reply, pages.link(request, path), notice);
      },
    });

    /** Uploads become files of the inbox, which the form keeps if it is shown again. They are deleted after a day without use. */
    async function keepFiles(request: ComposeRequest): Promise<void> {
      const uploads: string[] = [];
      for (const file of request.formFiles ?? []) {
        const { id, filename } = await attachments.createUpload(request.scope, request.params.id, file);
        uploads.push(`${id} ${filename}`);
      }
      if (uploads.length > 0)
        request.body.attachments = [...[request.body.attachments ?? []].flat(), ...uploads];
    }

    /** @returns the id of the message or draft. */
    async function submit(scope: Scope, inboxId: string, form: ComposeForm): Promise<string> {
      const content = readComposed(form);
      const sendAt = readSendTime(form);
      const files = toFilesToAttach(keptFiles(form));
      const asDraft = form.action === 'draft';
      if (asDraft) requirePermission(scope, 'drafts:write');
      if (form.mode === 'new') return submitNew(scope, inboxId, { content, sendAt, files, asDraft });
      const original = await findOriginal(scope, inboxId, form.original);
      const { to, subject: _subject, ...rest } = content;
      if (form.mode === 'forward') {
        if (to.length === 0 && !asDraft) throw invalid('/body/to', 'has no recipient', 'Enter an address.');
        const includeAttachments = form.include_attachments !== undefined;
        const request = { content: { ...rest, to }, includeAttachments, files, sendAt, asDraft };
        return idOf(await dependencies.replies.forward(scope, original.id, request));
      }
      if (content.textBody === null && !asDraft)
        throw invalid('/body/text_body', 'is empty', 'Write an answer.');
      const request = {
        content: { ...rest, textBody: content.textBody ?? '' },
        replyAll: form.mode === 'reply_all',
        files,
        sendAt,
        asDraft,
      };
      return idOf(await dependencies.replies.reply(scope, original.id, request));
    }

    async function submitNew(
      scope: Scope,
      inboxId: string,
      {
        content,
        sendAt,
        files,
        asDraft,
      }: {
        content: ReturnType<typeof readComposed>;
        sendAt: Date | undefined;
        files: ReturnType<typeof toFilesToAttach>;
        asDraft: boolean;
      },
    ): Promise<string> {
      if (asDraft) return idOf(await dependencies.drafts.create(scope, inboxId, { ...content, files }));
      if (sendAt)
        return idOf(await dependencies.drafts.schedule(scope, inboxId, { ...content, sendAt, files }));
      return idOf(await dependencies.sends.send(scope, inboxId, content, files));
    }
  };

const isAnswer = (mode: string | undefined): mode is Exclude<ComposeMode, 'new'> =>
  mode === 'reply' || mode === 'reply_all' || mode === 'forward';

const idOf = (sent: MessageDetails | DraftDetails): string =>
  'message' in sent ? sent.message.id : sent.draft.id;

/** Who gets an answer, separated by commas; undefined if the original has no address to reply to, which sending says. */
function listReplyRecipients(
  original: Parameters<typeof findReplyRecipients>[0],
  inbox: Parameters<typeof ownAddresses>[0],
  mode: ComposeMode,
): string | undefined {
  try {
    const { to, cc } = findReplyRecipients(original, {
      replyAll: mode === 'reply_all',
      ownAddresses: ownAddresses(inbox),
    });
    return [...to, ...cc].map(({ email }) => email).join(', ');
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

function toApiCall(inboxId: string, mode: ComposeMode, originalId: string) {
  const method = 'POST' as const;
  const body = { text_body: 'Hello from my agent.' };
  if (mode === 'new')
    return {
      method,
      path: `/inboxes/${inboxId}/messages`,
      body: { to: ['ada@people.example'], subject: 'Hello', ...body },
    };
  if (mode === 'forward')
    return { method, path: `/messages/${originalId}/forward`, body: { to: ['ada@people.example'], ...body } };
  return {
    method,
    path: `/messages/${originalId}/reply`,
    body: { ...body, ...(mode === 'reply_all' ? { reply_all: true } : {}) },
  };
}
