import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Cookies } from '../../api/plugins/cookies.ts';
import { enumOf, id, strictObject, text } from '../../api/schemas.ts';
import type { ActorNameService } from '../../domain/audit/actor-names.ts';
import type { ApprovalService } from '../../domain/drafts/approval.service.ts';
import type { Draft } from '../../domain/drafts/draft.entity.ts';
import type { DraftService } from '../../domain/drafts/draft.service.ts';
import type { ComparedField, DraftPreviewService } from '../../domain/drafts/draft-preview.service.ts';
import { REQUESTER_PROBLEMS } from '../../domain/identity/requester.ts';
import type { AlarmService } from '../../domain/messages/alarm.service.ts';
import type { MessageService } from '../../domain/messages/message.service.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { describeHtml } from '../drafts/draft-html.ts';
import { describeActor, describeSendError, SHORT_SIGNALS, SIGNALS, stateOf } from '../drafts/draft-words.ts';
import { showUnlessSent } from '../drafts/sent-draft.ts';
import { shortenExcerpt } from '../messages/words.ts';
import { listQuery, OptionalText, OrganizationQuery } from '../shell/forms.ts';
import { withQuery } from '../shell/links.ts';
import type { Pages } from '../shell/pages.ts';
import { createSeenVersions } from './seen-versions.ts';

export interface ApprovalPageDependencies {
  pages: Pages;
  cookies: Cookies;
  drafts: DraftService;
  approvals: ApprovalService;
  draftPreviews: DraftPreviewService;
  alarms: AlarmService;
  actorNames: ActorNameService;
  messages: MessageService;
}

const WAITING = { sendStatus: 'pending_approval' } as const;
const DraftParams = strictObject({ id: id('Draft id (drf_…).') });

/** The form carries the version that its page shows: a decision holds for what the person has seen. */
const Decision = strictObject({
  version: Type.Unsafe<string>({ type: 'string', maxLength: 9, pattern: '^[1-9]\\d*$' }),
  note: text(2_000),
  decision: enumOf(['approve', 'reject']),
  remember_recipients: Type.Optional(Type.Literal('on')),
});

/** What waits for approval: the list, one message as it will leave, and the decision. */
export const approvalPages =
  ({
    pages,
    cookies,
    drafts,
    approvals,
    draftPreviews,
    alarms,
    actorNames,
    messages,
  }: ApprovalPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const seenVersions = createSeenVersions(cookies);

    /** Approvals cover every environment, other screens one: a link names the one of the draft if it is another. */
    const ofDraft =
      (request: FastifyRequest, { environmentId }: Draft) =>
      (path: string) =>
        withQuery(pages.link(request, path), {
          env: environmentId === request.scope.environmentId ? undefined : environmentId,
        });

    /** The drafts that wait beside this one, oldest first; both undefined if it is the only one. */
    async function findNeighbors(request: FastifyRequest, draftId: string) {
      const neighbor = async (order: 'asc' | 'desc') =>
        (await drafts.listAll(request.scope, WAITING, { limit: 1, order, after: [draftId] })).items[0]?.draft
          .id;
      return { next: await neighbor('asc'), previous: await neighbor('desc') };
    }

    /** The page after a decision: the next one that waits, or the list. It names the message that was decided on. */
    async function findNextPage(request: FastifyRequest, draftId: string): Promise<string> {
      const { next, previous } = await findNeighbors(request, draftId);
      const first = next ?? previous;
      return pages.link(request, first === undefined ? '/approvals' : `/approvals/${first}`, {
        decided: draftId,
      });
    }

    /** The message of the last decision: its draft if it was rejected, or what was sent. */
    async function findDecided(request: FastifyRequest) {
      const { decided } = request.query as { decided?: string };
      if (!decided) return undefined;
      try {
        const { subject } = await findDecidedMessage(request, decided);
        return { href: pages.link(request, `/approvals/${decided}`), subject: subject || '(no subject)' };
      } catch (error) {
        if (error instanceof AppError && error.status < 500) return undefined;
        throw error;
      }
    }

    async function findDecidedMessage({ scope }: FastifyRequest, draftId: string) {
      try {
        return await draftPreviews.get(scope, draftId);
      } catch (error) {
        const messageId = error instanceof AppError ? error.extensions.message_id : undefined;
        if (typeof messageId !== 'string') throw error;
        return (await messages.get(scope, messageId)).message;
      }
    }

    async function list(request: FastifyRequest) {
      const { inbox_id: inbox } = request.query as { inbox_id?: string };
      const page = await drafts.listAll(
        request.scope,
        { ...WAITING, inboxId: inbox || undefined },
        pages.readPage(request, { limit: 50, order: 'asc' }),
      );
      const names = await actorNames.find(
        request.scope,
        page.items.flatMap(({ draft }) => [draft.inboxId, draft.requestedById]),
      );
      return {
        waiting: page.items.map(({ draft }) => ({
          draft,
          inbox: names.get(draft.inboxId) ?? draft.inboxId,
          requester: describeActor(draft.requestedByKind, draft.requestedById, names),
          signals: (draft.approvalReview?.signals ?? []).map((signal) => SHORT_SIGNALS[signal] ?? signal),
          isUnseen: (seenVersions.of(request, draft.id) ?? 0) < draft.version,
        })),
        next: pages.nextPage(request, page),
        decided: await findDecided(request),
        inbox: inbox && { id: inbox, name: names.get(inbox) ?? inbox },
      };
    }

    app.get(
      '/approvals',
      {
        config: { permission: 'messages:approve' },
        schema: {
          operationId: 'pages.approvals',
          querystring: listQuery({ inbox_id: OptionalText(64), decided: OptionalText(64) }),
        },
      },
      async (request, reply) =>
        pages.send(request, reply, {
          template: 'approvals/approvals',
          title: 'Approvals',
          data: await list(request),
          apiCall: {
            path: '/drafts',
            query: { send_status: 'pending_approval', order: 'asc', inbox_id: request.query.inbox_id },
          },
        }),
    );

    app.get(
      '/approvals/live',
      {
        exposeHeadRoute: false,
        config: { permission: 'messages:approve', heldOpen: true },
        schema: {
          operationId: 'pages.approvalsLive',
          querystring: listQuery({ inbox_id: OptionalText(64) }),
        },
      },
      (request, reply) =>
        pages.live(request, reply, {
          types: ['draft.pending_approval', 'draft.approved', 'draft.rejected'],
          // Events are those of one environment, approvals of all.
          intervalMs: 15_000,
          render: async () => pages.part(request, 'approvals/waiting', await list(request)),
        }),
    );

    async function show(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const { scope } = request;
      const { id: draftId } = request.params as { id: string };
      const { since } = request.query as { since?: string };
      const preview = await draftPreviews.get(scope, draftId);
      const { draft } = preview;
      const rejectedForm = request.body as { version?: string } | undefined;
      // A rejected decision was about the version of its form.
      const seen =
        problem && rejectedForm?.version
          ? Number(rejectedForm.version)
          : since === 'request'
            ? undefined
            : seenVersions.of(request, draftId);
      const comparison = await draftPreviews.compare(scope, draftId, seen);
      if (!scope.impersonation) seenVersions.remember(request, reply, draft);
      const names = await actorNames.find(scope, [
        draft.inboxId,
        draft.requestedById,
        draft.decidedById,
        draft.lastEditedById,
      ]);
      const neighbors = await findNeighbors(request, draftId);
      return pages.send(request, reply, {
        template: 'approvals/approval',
        title: preview.subject || '(no subject)',
        problem,
        data: {
          ...preview,
          ...describeHtml(preview.html),
          ofDraft: ofDraft(request, draft),
          environment: request.shell?.environments.find(({ id }) => id === draft.environmentId)?.name,
          state: stateOf(draft),
          decided: await findDecided(request),
          shortenExcerpt,
          error: draft.sendError === null ? null : describeSendError(draft.sendError),
          inbox: names.get(draft.inboxId) ?? draft.inboxId,
          requester: describeActor(draft.requestedByKind, draft.requestedById, names),
          decider: describeActor('user', draft.decidedById, names),
          requesterProblem: preview.requesterProblem && REQUESTER_PROBLEMS[preview.requesterProblem],
          isWaiting: draft.sendStatus === 'pending_approval',
          signals: describeSignals(draft),
          recipients: groupRecipients(draft),
          alarm: await findAlarm(request, draft),
          changes: describeChanges(draft, seen),
          comparison,
          comparesLastLook: seen !== undefined,
          fieldNames: FIELD_NAMES,
          next: neighbors.next && pages.link(request, `/approvals/${neighbors.next}`),
          previous: neighbors.previous && pages.link(request, `/approvals/${neighbors.previous}`),
        },
        apiCall: { path: `/drafts/${draftId}/preview` },
      });
    }

    async function findAlarm({ scope }: FastifyRequest, { approvalReview }: Draft) {
      const messageId = approvalReview?.alarm_message_id;
      if (!messageId) return null;
      return {
        messageId,
        evidence: await alarms.findEvidence(scope, messageId),
      };
    }

    app.get(
      '/approvals/:id',
      {
        config: { permission: 'messages:approve' },
        schema: {
          operationId: 'pages.approval',
          params: DraftParams,
          querystring: strictObject({
            ...OrganizationQuery.properties,
            since: Type.Optional(Type.Literal('request')),
            decided: OptionalText(64),
          }),
        },
      },
      (request, reply) => showUnlessSent(pages, request, reply, () => show(request, reply)),
    );

    pages.form(app, '/approvals/:id', {
      config: { permission: 'messages:approve' },
      schema: { operationId: 'pages.decideDraft', params: DraftParams, body: Decision },
      async work({ scope, params, body: { decision, note, version, remember_recipients: remember } }) {
        const decided = { version: Number(version), note };
        if (decision === 'reject') await approvals.reject(scope, params.id, decided);
        else
          await approvals.approve(scope, params.id, {
            ...decided,
            rememberRecipients: remember === 'on',
          });
      },
      // A draft that is gone was sent by someone else's approval.
      show: async (request, reply, problem) =>
        problem.status === 404
          ? pages.seeOther(reply, await findNextPage(request, request.params.id), 'draft-decided')
          : show(request, reply, problem),
      done: async (request, reply) =>
        pages.seeOther(
          reply,
          await findNextPage(request, request.params.id),
          request.body.decision === 'approve' ? 'draft-approved' : 'draft-rejected',
        ),
    });

    pages.form(app, '/approvals/:id/dismiss-alarm', {
      config: { permission: 'messages:approve' },
      schema: { operationId: 'pages.dismissAlarm', params: DraftParams, body: strictObject({}) },
      async work({ scope, params }) {
        const { draft } = await draftPreviews.get(scope, params.id);
        const messageId = draft.approvalReview?.alarm_message_id;
        if (!messageId) throw notFound('alarm', params.id);
        await alarms.dismiss({ ...scope, environmentId: draft.environmentId }, messageId);
      },
      show: (request, reply, problem) =>
        problem.status === 404
          ? pages.seeOther(reply, pages.link(request, `/approvals/${request.params.id}`), 'alarm-dismissed')
          : show(request, reply, problem),
      done: (request, reply) =>
        pages.seeOther(reply, pages.link(request, `/approvals/${request.params.id}`), 'alarm-dismissed'),
    });
    done();
  };

const FIELD_NAMES: Record<ComparedField, string> = {
  subject: 'Subject',
  to: 'To',
  cc: 'Cc',
  bcc: 'Bcc',
  text: 'Text',
};

const describeSignals = ({ approvalReview }: Draft): string[] =>
  (approvalReview?.signals ?? []).map((signal) => SIGNALS[signal] ?? signal);

const describeChanges = ({ approvalReview }: Draft, seen: number | undefined) =>
  (approvalReview?.changes ?? []).map(({ fields, ...change }) => ({
    ...change,
    fields: fields.map((name) => name.replaceAll('_', ' ')),
    isNew: seen !== undefined && change.version > seen,
  }));

/** The recipients of each field, with what an approver should know about each. */
function groupRecipients(draft: Draft) {
  const known = new Map(
    (draft.approvalReview?.recipients ?? []).map((each) => [each.email.toLowerCase(), each]),
  );
  return (['to', 'cc', 'bcc'] as const)
    .map((field) => ({
      name: FIELD_NAMES[field],
      addresses: draft[field].map(({ email, name }) => ({
        email,
        name,
        isExternal: known.get(email.toLowerCase())?.external ?? false,
        isFirstContact: known.get(email.toLowerCase())?.first_contact ?? false,
      })),
    }))
    .filter(({ addresses }) => addresses.length > 0);
}
