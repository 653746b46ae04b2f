import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import type { ApprovalService } from '../../domain/drafts/approval.service.ts';
import type { ApprovedRecipient } from '../../domain/drafts/approved-recipient.entity.ts';
import type { ApprovedRecipientService } from '../../domain/drafts/approved-recipient.service.ts';
import type { Row } from '../../platform/database/find-rows.ts';
import { type Lists, listOf, PageQuery } from '../lists.ts';
import { MESSAGE_RESPONSE, MessageRecord, presentMessage } from '../messages/messages.schemas.ts';
import {
  changeProblems,
  id,
  NoContent,
  nullableText,
  postProblems,
  problems,
  ref,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';
import { DRAFT_RESPONSE, DraftRecord, MAX_NOTE_LENGTH, presentDraft } from './drafts.schemas.ts';

const DraftParams = strictObject({ id: id('Draft id (drf_…).') });
const InboxParams = strictObject({ inboxId: id('Inbox id (inb_…).') });
const RecipientParams = strictObject({ id: id('Approved recipient id (apr_…).') });

const decision = {
  version: Type.Integer({
    minimum: 1,
    maximum: 2_147_483_647,
    description: 'The version of the draft that you have seen. Another one is a 409.',
  }),
  note: Type.Optional(
    nullableText(MAX_NOTE_LENGTH, { description: 'Why. In the audit log, the event and the draft.' }),
  ),
};
export const RejectDraft = strictObject(decision, { $id: 'RejectDraft', title: 'RejectDraft' });
export const ApproveDraft = strictObject(
  {
    ...decision,
    remember_recipients: Type.Optional(
      Type.Boolean({
        description: 'Let the inbox send to these recipients without approval for 30 days. Default: false.',
      }),
    ),
  },
  { $id: 'ApproveDraft', title: 'ApproveDraft' },
);

export const ApprovedRecipientRecord = strictObject(
  {
    id: id('Approved recipient id (apr_…).'),
    inbox_id: id('The inbox that may send to it.'),
    email: text(320),
    approved_by: id('User (usr_…).'),
    expires_at: timestamp('From then on, messages to it need approval again.'),
    created_at: timestamp(),
  },
  { $id: 'ApprovedRecipient', title: 'ApprovedRecipient' },
);

export const approvalRoutes =
  ({
    approvals,
    approvedRecipients,
    lists,
  }: {
    approvals: ApprovalService;
    approvedRecipients: ApprovedRecipientService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/drafts/:id/approve',
      {
        config: {
          permission: 'messages:approve',
          ...MESSAGE_RESPONSE,
        },
        schema: {
          operationId: 'drafts.approve',
          summary: 'Approve a draft that waits for it',
          description:
            'For people, not for keys. The draft becomes a message (201), or is scheduled if it has a `send_at` in the future (200). If the send is refused, the draft still waits.',
          tags: ['Drafts'],
          params: DraftParams,
          body: ref(ApproveDraft),
          response: { 200: ref(DraftRecord), 201: ref(MessageRecord), ...postProblems() },
        },
      },
      async ({ scope, params, body }, reply) => {
        const { version, note, remember_recipients: rememberRecipients } = body;
        const approved = await approvals.approve(scope, params.id, { version, note, rememberRecipients });
        reply.code('draft' in approved ? 200 : 201);
        return 'draft' in approved ? presentDraft(approved) : presentMessage(approved);
      },
    );

    app.post(
      '/drafts/:id/reject',
      {
        config: { permission: 'messages:approve', ...DRAFT_RESPONSE },
        schema: {
          operationId: 'drafts.reject',
          summary: 'Reject a draft that waits for approval',
          description: 'For people, not for keys. The draft is kept; changed, it can be sent again.',
          tags: ['Drafts'],
          params: DraftParams,
          body: ref(RejectDraft),
          response: { 200: ref(DraftRecord), ...postProblems() },
        },
      },
      async ({ scope, params, body }) => presentDraft(await approvals.reject(scope, params.id, body)),
    );

    app.get(
      '/inboxes/:inboxId/approved-recipients',
      {
        config: { permission: 'messages:approve' },
        schema: {
          operationId: 'approvedRecipients.list',
          summary: 'List the recipients that need no approval',
          tags: ['Drafts'],
          params: InboxParams,
          querystring: PageQuery,
          response: { 200: listOf(ref(ApprovedRecipientRecord)), ...problems() },
        },
      },
      async (request) => {
        const { scope, params } = request;
        const page = await approvedRecipients.list(scope, params.inboxId, lists.read(request));
        return lists.present(request, page, presentRecipient);
      },
    );

    app.delete(
      '/approved-recipients/:id',
      {
        config: { permission: 'messages:approve' },
        schema: {
          operationId: 'approvedRecipients.delete',
          summary: 'Require approval for a recipient again',
          tags: ['Drafts'],
          params: RecipientParams,
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async ({ scope, params }, reply) => {
        await approvedRecipients.remove(scope, params.id);
        return reply.code(204).send(null);
      },
    );
    done();
  };

function presentRecipient(recipient: Row<ApprovedRecipient>): Static<typeof ApprovedRecipientRecord> {
  return {
    id: recipient.id,
    inbox_id: recipient.inboxId,
    email: recipient.email,
    approved_by: recipient.approvedBy,
    expires_at: recipient.expiresAt.toISOString(),
    created_at: recipient.createdAt.toISOString(),
  };
}
