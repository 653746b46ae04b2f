import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { enumOf, id, strictObject } from '../../api/schemas.ts';
import type { AttachmentService } from '../../domain/attachments/attachment.service.ts';
import type { ActorNameService } from '../../domain/audit/actor-names.ts';
import type { Draft, DraftSendStatus } from '../../domain/drafts/draft.entity.ts';
import type { DraftDetails, DraftService } from '../../domain/drafts/draft.service.ts';
import type { DraftPreviewService } from '../../domain/drafts/draft-preview.service.ts';
import type { Scope } from '../../domain/identity/scope.ts';
import { prepareFrameHtml } from '../../domain/messages/message-frame.service.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { sendFrame } from '../messages/frame.ts';
import { listQuery, OptionalText, OrganizationQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { compareWithForm, DraftForm, MAX_EDITABLE_CHARACTERS, readChanges, toFields } from './draft-form.ts';
import { describeHtml } from './draft-html.ts';
import { DRAFT_STATES, DRAFT_STATUS_LIST, describeActor, describeSendError, stateOf } from './draft-words.ts';
import { showUnlessSent } from './sent-draft.ts';

export interface DraftPageDependencies {
  pages: Pages;
  drafts: DraftService;
  draftPreviews: DraftPreviewService;
  attachments: AttachmentService;
  actorNames: ActorNameService;
}

const DraftParams = strictObject({ id: id('Draft id (drf_…).') });
const { version } = DraftForm.properties;

/** The list shows one environment, as every list of the console does. */
const ofEnvironment = (scope: Scope): Scope => ({ ...scope, environmentSelected: true });

/** Unsent messages: what they will be, who made them, and their way out. */
export const draftPages =
  ({
    pages,
    drafts,
    draftPreviews,
    attachments,
    actorNames,
  }: DraftPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const pathOf = (request: FastifyRequest, draftId: string) => pages.link(request, `/drafts/${draftId}`);

    app.get(
      '/drafts',
      {
        config: { permission: 'drafts:read' },
        schema: {
          operationId: 'pages.drafts',
          querystring: listQuery({
            status: Type.Optional(enumOf(['', ...DRAFT_STATUS_LIST] as ('' | DraftSendStatus)[])),
            inbox_id: OptionalText(64),
          }),
        },
      },
      async (request, reply) => {
        const { status, inbox_id: inbox } = request.query;
        const filter = { sendStatus: status || undefined, inboxId: inbox || undefined };
        const page = await drafts.listAll(
          ofEnvironment(request.scope),
          filter,
          pages.readPage(request, { limit: 50 }),
        );
        const names = await actorNames.find(
          request.scope,
          page.items.flatMap(({ draft }) => [draft.inboxId, draft.createdById]),
        );
        return pages.send(request, reply, {
          template: 'drafts/drafts',
          title: 'Drafts',
          data: {
            drafts: page.items.map(({ draft, attachments: files }) => ({
              draft,
              files: files.length,
              state: stateOf(draft),
              inbox: names.get(draft.inboxId) ?? draft.inboxId,
              maker: describeActor(draft.createdByKind, draft.createdById, names),
            })),
            next: pages.nextPage(request, page),
            tabs: [undefined, ...DRAFT_STATUS_LIST].map((each) => [
              pages.link(request, '/drafts', { status: each, inbox_id: inbox }),
              each ? DRAFT_STATES[each].plural : 'All',
              (status || undefined) === each,
            ]),
            filter: { status, inbox, inboxName: inbox && (names.get(inbox) ?? inbox) },
          },
          apiCall: { path: '/drafts', query: { send_status: status, inbox_id: inbox } },
        });
      },
    );

    async function show(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const { scope } = request;
      const { id: draftId } = request.params as { id: string };
      const details = await drafts.get(scope, draftId);
      const { draft } = details;
      const preview = await draftPreviews.get(scope, draftId);
      const names = await actorNames.find(scope, [
        draft.inboxId,
        draft.createdById,
        draft.lastEditedById,
        draft.requestedById,
      ]);
      const isOvertaken = problem?.code === 'precondition_failed';
      const differences = isOvertaken ? compareWithForm(draft, (request.body ?? {}) as object) : [];
      return pages.send(request, reply, {
        template: 'drafts/draft',
        title: draft.subject || '(no subject)',
        problem: isOvertaken ? overtaken(problem, differences.length > 0) : problem,
        data: {
          draft,
          files: details.attachments,
          state: stateOf(draft),
          error: draft.sendError === null ? null : describeSendError(draft.sendError),
          inbox: names.get(draft.inboxId) ?? draft.inboxId,
          maker: describeActor(draft.createdByKind, draft.createdById, names),
          editor: describeActor(draft.lastEditedByKind, draft.lastEditedById, names),
          requester: describeActor(draft.requestedByKind, draft.requestedById, names),
          ...rights(scope, draft),
          fromAddress: preview.fromAddress,
          text: preview.text,
          hasHtml: preview.html !== null,
          ...describeHtml(preview.html),
          fields: toFields(draft),
          differences,
        },
        apiCall: { path: `/drafts/${draftId}` },
      });
    }

    app.get(
      '/drafts/:id',
      {
        config: { permission: 'drafts:read' },
        schema: { operationId: 'pages.draft', params: DraftParams, querystring: OrganizationQuery },
      },
      (request, reply) => showUnlessSent(pages, request, reply, () => show(request, reply)),
    );

    app.get(
      '/drafts/:id/message',
      {
        config: { permission: 'drafts:read' },
        schema: { operationId: 'pages.draftMessage', params: DraftParams, querystring: OrganizationQuery },
      },
      async (request, reply) => {
        const { html } = await draftPreviews.get(request.scope, request.params.id);
        // Its links are listed on the page; here they are words, and lead nowhere.
        const shown = html && prepareFrameHtml(html, { linkTo: null, allowsRemoteImages: false });
        return sendFrame(reply, { html: shown });
      },
    );

    app.get(
      '/drafts/:id/files/:attachmentId',
      {
        config: { permission: 'drafts:read' },
        schema: {
          operationId: 'pages.draftFile',
          params: strictObject({
            id: id('Draft id (drf_…).'),
            attachmentId: id('Attachment id (att_…).'),
          }),
          querystring: OrganizationQuery,
        },
      },
      async ({ scope, params }, reply) => {
        const { draft, attachments: files } = await draftPreviews.get(scope, params.id);
        if (!files.some((file) => file.id === params.attachmentId))
          throw notFound('attachment', params.attachmentId);
        const { environmentId } = draft;
        const { link } = await attachments.get({ ...scope, environmentId }, params.attachmentId);
        return reply.redirect(link.url, 303);
      },
    );

    pages.form(app, '/drafts/:id', {
      config: { permission: 'drafts:write' },
      schema: { operationId: 'pages.updateDraft', params: DraftParams, body: DraftForm },
      work: async ({ scope, params, body }) => {
        const { draft } = await drafts.get(scope, params.id);
        const seen = { ifMatch: [Number(body.version)] };
        if (draft.version !== Number(body.version)) throw overtakenAt(draft);
        const changes = readChanges(body, draft);
        const saved =
          Object.keys(changes).length === 0
            ? { draft }
            : await drafts.update(scope, params.id, changes, seen);
        if (body.intent === 'save') return saved;
        return drafts.send(scope, params.id, { version: saved.draft.version });
      },
      show,
      done: (request, reply, result) => {
        if ('message' in result)
          return pages.seeOther(reply, pages.link(request, `/messages/${result.message.id}`), 'draft-sent');
        const waits = request.body.intent === 'send' && result.draft.sendStatus === 'pending_approval';
        return pages.seeOther(reply, pathOf(request, result.draft.id), waits ? 'draft-waits' : 'saved');
      },
    });

    pages.form(app, '/drafts/:id/unschedule', {
      config: { permission: 'drafts:write' },
      schema: { operationId: 'pages.unscheduleDraft', params: DraftParams, body: strictObject({ version }) },
      work: ({ scope, params, body }) =>
        drafts.update(scope, params.id, { sendAt: null }, { ifMatch: [Number(body.version)] }),
      show,
      done: (request, reply, { draft }) =>
        pages.seeOther(reply, pathOf(request, draft.id), 'draft-unscheduled'),
    });

    pages.form(app, '/drafts/:id/delete', {
      config: { permission: 'drafts:write' },
      schema: { operationId: 'pages.deleteDraft', params: DraftParams, body: strictObject({ version }) },
      work: ({ scope, params, body }) => drafts.delete(scope, params.id, { ifMatch: [Number(body.version)] }),
      show,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, '/drafts'), 'draft-deleted'),
    });
    done();
  };

/** What the person may do with the draft; the use-cases decide again. */
function rights({ permissions, impersonation }: Scope, draft: DraftDetails['draft']) {
  const isPlanned = draft.sendStatus === 'scheduled' || draft.sendStatus === 'pending_approval';
  const mayWrite = permissions.has('drafts:write') && !impersonation;
  const maySend = permissions.has('messages:send') && !impersonation;
  const isTooLong = (draft.textBody ?? '').length > MAX_EDITABLE_CHARACTERS;
  return {
    mayWrite,
    isTooLong,
    mayEdit: mayWrite && (!isPlanned || maySend) && draft.submission === null && !isTooLong,
    maySend: maySend && mayWrite && draft.sendStatus !== 'pending_approval',
  };
}

const overtakenAt = ({ version: current }: Draft) =>
  new AppError('precondition_failed', { detail: `The version is ${current}.`, fix: 'Look at it again.' });

/** The same rejection in words for people. */
const overtaken = (problem: AppError, differs: boolean) =>
  new AppError(problem.code, {
    detail: 'Someone else changed the draft while you had it open. Nothing was done yet.',
    fix: differs
      ? 'Compare the two below. Save to keep yours, or load the saved one.'
      : 'Look at the draft as it is now, then try again.',
    cause: problem,
  });
