import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply } from 'fastify';
import { type Static, Type } from 'typebox';
import type { AttachmentService } from '../../domain/attachments/attachment.service.ts';
import { DRAFT_SEND_STATUSES } from '../../domain/drafts/draft.entity.ts';
import type { DraftDetails, DraftInput, DraftService } from '../../domain/drafts/draft.service.ts';
import { storeBodyFiles } from '../attachments/body-files.ts';
import { type Lists, listOf, PageQuery, pageQuery } from '../lists.ts';
import { CONTENT_BODY_LIMIT_BYTES } from '../messages/content.schemas.ts';
import { readDraftContent } from '../messages/content.ts';
import { type MessageViews, ViewQuery } from '../messages/message-views.ts';
import { MESSAGE_RESPONSE, MessageRecord } from '../messages/messages.schemas.ts';
import { IfMatchHeaders, parseIfMatch } from '../plugins/preconditions.ts';
import {
  changeProblems,
  enumOf,
  id,
  NoContent,
  postProblems,
  problems,
  ref,
  strictObject,
} from '../schemas.ts';
import { parseTime } from '../time.ts';
import {
  DRAFT_RESPONSE,
  DraftFields,
  DraftRecord,
  presentDraft,
  SCHEDULED_RESPONSE,
  SendDraft,
} from './drafts.schemas.ts';

const InboxParams = strictObject({ inboxId: id('Inbox id (inb_…).') });
const DraftParams = strictObject({ id: id('Draft id (drf_…).') });

export const draftRoutes =
  ({
    drafts,
    attachments,
    lists,
    messageViews,
  }: {
    drafts: DraftService;
    attachments: AttachmentService;
    lists: Lists;
    messageViews: MessageViews;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/inboxes/:inboxId/drafts',
      {
        bodyLimit: CONTENT_BODY_LIMIT_BYTES,
        config: { permission: 'drafts:write', ...DRAFT_RESPONSE, prepare: storeBodyFiles(attachments) },
        schema: {
          operationId: 'drafts.create',
          summary: 'Create a draft',
          tags: ['Drafts'],
          params: InboxParams,
          body: ref(DraftFields),
          response: { 201: ref(DraftRecord), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { scope, params, body, filesToAttach } = request;
        const draft = await drafts.create(scope, params.inboxId, readDraft(body, filesToAttach));
        reply.code(201);
        return presentWithEtag(reply, draft);
      },
    );

    app.get(
      '/inboxes/:inboxId/drafts',
      {
        config: { permission: 'drafts:read' },
        schema: {
          operationId: 'drafts.list',
          summary: 'List the unsent drafts of an inbox',
          tags: ['Drafts'],
          params: InboxParams,
          querystring: PageQuery,
          response: { 200: listOf(ref(DraftRecord)), ...problems() },
        },
      },
      async (request) => {
        const page = await drafts.list(request.scope, request.params.inboxId, lists.read(request));
        return lists.present(request, page, presentDraft);
      },
    );

    app.get(
      '/drafts',
      {
        config: { permission: 'drafts:read' },
        schema: {
          operationId: 'drafts.listAll',
          summary: 'List drafts',
          description:
            'Those of every inbox that the credential reaches; in every environment, unless it is bound to one or the request selects one with `x-env-id`. With `send_status=pending_approval`: what waits for the approval of a person.',
          tags: ['Drafts'],
          querystring: strictObject({
            ...pageQuery,
            send_status: Type.Optional(
              enumOf(DRAFT_SEND_STATUSES, { description: 'Only drafts with this status.' }),
            ),
            inbox_id: Type.Optional(id('Only drafts of this inbox.')),
          }),
          response: { 200: listOf(ref(DraftRecord)), ...problems() },
        },
      },
      async (request) => {
        const { send_status: sendStatus, inbox_id: inboxId } = request.query;
        const page = await drafts.listAll(request.scope, { sendStatus, inboxId }, lists.read(request));
        return lists.present(request, page, presentDraft);
      },
    );

    app.get(
      '/drafts/:id',
      {
        config: { permission: 'drafts:read' },
        schema: {
          operationId: 'drafts.get',
          summary: 'Get a draft',
          tags: ['Drafts'],
          params: DraftParams,
          response: { 200: ref(DraftRecord), ...problems() },
        },
      },
      async (request, reply) => presentWithEtag(reply, await drafts.get(request.scope, request.params.id)),
    );

    app.patch(
      '/drafts/:id',
      {
        bodyLimit: CONTENT_BODY_LIMIT_BYTES,
        config: { permission: 'drafts:write', ...DRAFT_RESPONSE, prepare: storeBodyFiles(attachments) },
        schema: {
          operationId: 'drafts.update',
          summary: 'Update a draft',
          description:
            'A person who schedules a draft that a key made or last changed, or changes what a key scheduled, names its version by `If-Match` while a policy requires approval.',
          tags: ['Drafts'],
          params: DraftParams,
          headers: IfMatchHeaders,
          body: ref(DraftFields),
          response: { 200: ref(DraftRecord), ...changeProblems(412, 422, 428) },
        },
      },
      async (request, reply) => {
        const ifMatch = parseIfMatch(request.headers['if-match']);
        const patch = readDraft(request.body, request.filesToAttach);
        return presentWithEtag(
          reply,
          await drafts.update(request.scope, request.params.id, patch, { ifMatch }),
        );
      },
    );

    app.delete(
      '/drafts/:id',
      {
        config: { permission: 'drafts:write' },
        schema: {
          operationId: 'drafts.delete',
          summary: 'Delete a draft',
          tags: ['Drafts'],
          params: DraftParams,
          headers: IfMatchHeaders,
          response: { 204: NoContent, ...changeProblems(412) },
        },
      },
      async (request, reply) => {
        const ifMatch = parseIfMatch(request.headers['if-match']);
        await drafts.delete(request.scope, request.params.id, { ifMatch });
        return reply.code(204).send(null);
      },
    );

    app.post(
      '/drafts/:id/send',
      {
        config: {
          permission: 'messages:send',
          bodyMayBeEmpty: true,
          announcesRefusals: true,
          ...MESSAGE_RESPONSE,
          ...SCHEDULED_RESPONSE,
        },
        schema: {
          operationId: 'drafts.send',
          summary: 'Send a draft',
          description:
            'The draft becomes a message and is deleted. If the send is refused, the draft is kept. If a policy requires approval, the draft waits for it and is returned with 202. A person who sends a draft that a key made or last changed names its version while such a policy is on, by `If-Match` or `version`.',
          tags: ['Drafts'],
          params: DraftParams,
          headers: IfMatchHeaders,
          querystring: ViewQuery,
          body: ref(SendDraft),
          response: { 201: ref(MessageRecord), 202: ref(DraftRecord), ...postProblems(412, 428) },
        },
      },
      async (request, reply) => {
        const { scope, params, headers, body } = request;
        const ifMatch = parseIfMatch(headers['if-match']);
        const sent = await drafts.send(scope, params.id, { ifMatch, version: body.version });
        return messageViews.presentSent(request, reply, sent);
      },
    );
    done();
  };

function presentWithEtag(reply: FastifyReply, details: DraftDetails): Static<typeof DraftRecord> {
  reply.header('etag', `"${details.draft.version}"`);
  return presentDraft(details);
}

function readDraft(body: Static<typeof DraftFields>, files: DraftInput['files']): DraftInput {
  const { thread_id, in_reply_to, send_at } = body;
  return {
    ...readDraftContent(body),
    ...(files === undefined ? {} : { files }),
    ...(thread_id === undefined ? {} : { threadId: thread_id }),
    ...(in_reply_to === undefined ? {} : { inReplyTo: in_reply_to }),
    ...(send_at === undefined
      ? {}
      : { sendAt: send_at === null ? null : parseTime('/body/send_at', send_at) }),
  };
}
