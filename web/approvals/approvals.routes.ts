import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { id, strictObject, text } from '../../api/schemas.ts';
import type { AttachmentService } from '../../domain/attachments/attachment.service.ts';
import type { ApprovalService } from '../../domain/drafts/approval.service.ts';
import type { DraftService } from '../../domain/drafts/draft.service.ts';
import type { ComparedField, DraftPreviewService } from '../../domain/drafts/draft-preview.service.ts';
import { REQUESTER_PROBLEMS } from '../../domain/identity/requester.ts';
import type { AlarmService } from '../../domain/messages/alarm.service.ts';
import { describeAlarm } from '../../domain/messages/injection-alarms.ts';
import { type AppError, notFound } from '../../platform/errors.ts';
import { formatTime } from '../shell/formats.ts';
import { OrganizationQuery } from '../shell/forms.ts';
import { type Pages, rejectionOf } from '../shell/pages.ts';

export interface ApprovalPageDependencies {
  pages: Pages;
  drafts: DraftService;
  approvals: ApprovalService;
  draftPreviews: DraftPreviewService;
  attachments: AttachmentService;
  alarms: AlarmService;
}

const WAITING = { limit: 100, order: 'asc' } as const;
const DraftParams = strictObject({ id: id('Draft id (drf_…).') });

/** The form carries the version that its page shows: a decision holds for what the person has seen. */
const decision = {
  version: Type.Unsafe<string>({ type: 'string', maxLength: 9, pattern: '^[1-9]\\d*$' }),
  note: text(2_000),
};

/** Of a message: no scripts, forms, links out of the frame, or anything loaded from elsewhere. */
const MESSAGE_POLICY =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

/** What waits for approval: the list, one message as its recipient will see it, and the decision. */
export const approvalPages =
  ({
    pages,
    drafts,
    approvals,
    draftPreviews,
    attachments,
    alarms,
  }: ApprovalPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const home = ({ scope }: FastifyRequest) => `/approvals?org=${scope.organizationId}`;

    async function showDraft(
      request: FastifyRequest,
      reply: FastifyReply,
      draftId: string,
      rejected?: { problem: AppError; seenVersion: number },
    ) {
      const preview = await draftPreviews.get(request.scope, draftId);
      const { draft } = preview;
      const comparison = await draftPreviews.compare(request.scope, draftId, rejected?.seenVersion);
      const changes = draft.approvalReview?.changes ?? [];
      const alarmMessageId = draft.approvalReview?.alarm_message_id;
      return pages.send(request, reply, {
        template: 'approvals/approval',
        title: preview.subject || '(no subject)',
        problem: rejected?.problem,
        data: {
          ...preview,
          organizationId: request.scope.organizationId,
          requesterProblem: preview.requesterProblem && REQUESTER_PROBLEMS[preview.requesterProblem],
          isWaiting: draft.sendStatus === 'pending_approval',
          signals: describeSignals(draft.approvalReview?.signals ?? []),
          alarm: alarmMessageId && {
            reason: describeAlarm(alarmMessageId),
            evidence: await alarms.findEvidence(request.scope, alarmMessageId),
          },
          changes: changes.map(({ fields, ...change }) => ({
            ...change,
            fields: fields.map((name) => name.replaceAll('_', ' ')),
            isNew: rejected !== undefined && change.version > rejected.seenVersion,
          })),
          comparison,
          fieldNames: FIELD_NAMES,
          time: formatTime,
        },
      });
    }

    app.get(
      '/approvals',
      {
        config: { permission: 'messages:approve' },
        schema: { operationId: 'pages.approvals', querystring: OrganizationQuery },
      },
      async (request, reply) => {
        const filter = { sendStatus: 'pending_approval' } as const;
        const { items, next } = await drafts.listAll(request.scope, filter, WAITING);
        return pages.send(request, reply, {
          template: 'approvals/approvals',
          title: 'Approvals',
          data: {
            waiting: items.map(({ draft }) => ({
              draft,
              signals: describeSignals(draft.approvalReview?.signals ?? []),
            })),
            hasMore: next !== null,
            organizationId: request.scope.organizationId,
            time: formatTime,
          },
        });
      },
    );

    app.get(
      '/approvals/:id',
      {
        config: { permission: 'messages:approve' },
        schema: { operationId: 'pages.approval', params: DraftParams, querystring: OrganizationQuery },
      },
      async (request, reply) => showDraft(request, reply, request.params.id),
    );

    app.get(
      '/approvals/:id/message',
      {
        config: { permission: 'messages:approve' },
        schema: { operationId: 'pages.approvalMessage', params: DraftParams, querystring: OrganizationQuery },
      },
      async (request, reply) => {
        const { html } = await draftPreviews.get(request.scope, request.params.id);
        return reply
          .headers({ 'content-security-policy': MESSAGE_POLICY, 'x-robots-tag': 'noindex' })
          .type('text/html; charset=utf-8')
          .send(`<!doctype html><meta charset="utf-8"><title>Message</title>${html ?? ''}`);
      },
    );

    app.get(
      '/approvals/:id/files/:attachmentId',
      {
        config: { permission: 'messages:approve' },
        schema: {
          operationId: 'pages.approvalFile',
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

    app.post(
      '/approvals/:id/approve',
      {
        config: { permission: 'messages:approve' },
        schema: {
          operationId: 'pages.approveDraft',
          params: DraftParams,
          querystring: OrganizationQuery,
          body: strictObject({ ...decision, remember_recipients: Type.Optional(Type.Literal('on')) }),
        },
      },
      async (request, reply) => {
        const { scope, params, body } = request;
        const { note, remember_recipients: remember } = body;
        const version = Number(body.version);
        const approving = approvals.approve(scope, params.id, {
          version,
          note,
          rememberRecipients: remember === 'on',
        });
        const problem = await rejectionOf(approving);
        if (!problem) return pages.seeOther(reply, home(request), 'draft-approved');
        return problem.status === 404
          ? pages.seeOther(reply, home(request), 'draft-decided')
          : showDraft(request, reply, params.id, { problem, seenVersion: version });
      },
    );

    app.post(
      '/approvals/:id/reject',
      {
        config: { permission: 'messages:approve' },
        schema: {
          operationId: 'pages.rejectDraft',
          params: DraftParams,
          querystring: OrganizationQuery,
          body: strictObject(decision),
        },
      },
      async (request, reply) => {
        const { scope, params, body } = request;
        const version = Number(body.version);
        const problem = await rejectionOf(approvals.reject(scope, params.id, { version, note: body.note }));
        if (!problem) return pages.seeOther(reply, home(request), 'draft-rejected');
        return problem.status === 404
          ? pages.seeOther(reply, home(request), 'draft-decided')
          : showDraft(request, reply, params.id, { problem, seenVersion: version });
      },
    );

    app.post(
      '/approvals/:id/dismiss-alarm',
      {
        config: { permission: 'messages:approve' },
        schema: {
          operationId: 'pages.dismissAlarm',
          params: DraftParams,
          querystring: OrganizationQuery,
          body: strictObject({}),
        },
      },
      async (request, reply) => {
        const { scope, params } = request;
        const { draft } = await draftPreviews.get(scope, params.id);
        const messageId = draft.approvalReview?.alarm_message_id;
        if (!messageId) throw notFound('alarm', params.id);
        const within = { ...scope, environmentId: draft.environmentId };
        const problem = await rejectionOf(alarms.dismiss(within, messageId));
        const page = `/approvals/${draft.id}?org=${scope.organizationId}`;
        return problem === undefined || problem.status === 404
          ? pages.seeOther(reply, page, 'alarm-dismissed')
          : showDraft(request, reply, draft.id, { problem, seenVersion: draft.version });
      },
    );
    done();
  };

const FIELD_NAMES: Record<ComparedField, string> = {
  subject: 'Subject',
  to: 'To',
  cc: 'Cc',
  bcc: 'Bcc',
  text: 'Text',
};

const SIGNAL_TEXTS: Record<string, string> = {
  external_recipient: 'A recipient is outside your organization',
  first_contact: 'First message to a recipient',
  attachments: 'Has attachments',
  injection_alarm: 'A received message shows signs of prompt injection',
  changed: 'Changed while it waited',
};

const describeSignals = (signals: readonly string[]): string[] =>
  signals.map((signal) => SIGNAL_TEXTS[signal] ?? signal);
