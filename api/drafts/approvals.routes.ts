import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import type { ApprovedRecipient } from '../../domain/drafts/approval.entity.ts';
import type { ApprovalService } from '../../domain/drafts/approval.service.ts';
import type { ApprovedRecipientService } from '../../domain/drafts/approved-recipient.service.ts';
import type { ApprovalReview } from '../../domain/drafts/draft.entity.ts';
import {
  COMPARED_FIELDS,
  type DraftComparison,
  type DraftPreview,
  type DraftPreviewService,
} from '../../domain/drafts/draft-preview.service.ts';
import { MAX_DIFFERENCE_LINES } from '../../domain/drafts/text-difference.ts';
import { REQUESTER_PROBLEMS, type RequesterProblem } from '../../domain/identity/requester.ts';
import { type Lists, listOf, PageQuery } from '../lists.ts';
import { MAX_BODY_BYTES, MAX_SUBJECT_LENGTH } from '../messages/content.schemas.ts';
import { type MessageViews, ViewQuery } from '../messages/message-views.ts';
import { MESSAGE_RESPONSE, MessageRecord } from '../messages/messages.schemas.ts';
import {
  changeProblems,
  enumOf,
  id,
  NoContent,
  nullableText,
  postProblems,
  problems,
  ref,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';
import {
  DRAFT_RESPONSE,
  DraftApproval,
  DraftRecord,
  MAX_NOTE_LENGTH,
  presentAlarm,
  presentDraft,
} from './drafts.schemas.ts';

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

const DifferenceRecord = strictObject({
  field: enumOf(COMPARED_FIELDS),
  lines: Type.Array(
    strictObject({
      change: enumOf(['same', 'added', 'removed', 'omitted'], {
        description: '`omitted` stands for unchanged lines; it says how many.',
      }),
      line: text(MAX_BODY_BYTES),
    }),
    { maxItems: MAX_DIFFERENCE_LINES },
  ),
});
const ComparisonRecord = strictObject({
  seen_version: Type.Integer({ minimum: 1 }),
  version: Type.Integer({ minimum: 1 }),
  differences: Type.Array(DifferenceRecord, { maxItems: COMPARED_FIELDS.length }),
  too_long: Type.Boolean({ description: 'The text is longer than 64 KiB and was not compared.' }),
});

export const DraftPreviewRecord = resource(
  'draft_preview',
  {
    draft_id: id('Draft id (drf_…).'),
    version: Type.Integer({ minimum: 1 }),
    from_address: text(320),
    to_addresses: Type.Array(text(320), { maxItems: 50 }),
    cc_addresses: Type.Array(text(320), { maxItems: 50 }),
    bcc_addresses: Type.Array(text(320), { maxItems: 50 }),
    subject: text(MAX_SUBJECT_LENGTH + 100),
    text_body: nullableText(MAX_BODY_BYTES, {
      description: 'Made from the HTML if the draft has no text; null if it has neither.',
    }),
    html_body: nullableText(MAX_BODY_BYTES * 2, {
      description: 'Without scripts, forms and what recipients cannot see. Show it in a sandboxed frame.',
    }),
    signals: DraftApproval.properties.signals,
    recipients: DraftApproval.properties.recipients,
    alarm_message_id: DraftApproval.properties.alarm_message_id,
    reason: DraftApproval.properties.reason,
    changes: DraftApproval.properties.changes,
    requester_problem: Type.Unsafe<RequesterProblem | null>({
      type: ['string', 'null'],
      enum: [...(Object.keys(REQUESTER_PROBLEMS) as RequesterProblem[]), null],
      description:
        'Why an approval would reject the draft instead of sending it: the requester no longer has permission to send. Null if they may, or if it does not wait.',
    }),
    comparison: Type.Union([ComparisonRecord, Type.Null()], {
      description:
        'What differs from `seen_version`, or from the oldest version kept (the last 20 since it waits). Null if the draft does not wait for approval, or has not changed.',
    }),
  },
  { $id: 'DraftPreview', title: 'DraftPreview' },
);

export const ApprovedRecipientRecord = resource(
  'approved_recipient',
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
    draftPreviews,
    approvedRecipients,
    lists,
    messageViews,
  }: {
    approvals: ApprovalService;
    draftPreviews: DraftPreviewService;
    approvedRecipients: ApprovedRecipientService;
    lists: Lists;
    messageViews: MessageViews;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/drafts/:id/preview',
      {
        config: { permission: 'drafts:read' },
        schema: {
          operationId: 'drafts.preview',
          summary: 'See a draft as its recipient will',
          description:
            'With the final subject and text, and with sanitized HTML. Pass the version that you saw last as `seen_version` to get only later changes, and a comparison with it.',
          tags: ['Drafts'],
          params: DraftParams,
          querystring: strictObject({
            seen_version: Type.Optional(
              Type.Integer({
                minimum: 0,
                maximum: 2_147_483_647,
                description: 'The version that you saw last.',
              }),
            ),
          }),
          response: { 200: ref(DraftPreviewRecord), ...problems() },
        },
      },
      async ({ scope, params, query: { seen_version: seenVersion } }) => {
        const preview = await draftPreviews.get(scope, params.id);
        const comparison = await draftPreviews.compare(scope, params.id, seenVersion);
        return presentPreview(preview, comparison, seenVersion ?? 0);
      },
    );

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
          querystring: ViewQuery,
          body: ref(ApproveDraft),
          response: { 200: ref(DraftRecord), 201: ref(MessageRecord), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { scope, params, body } = request;
        const { version, note, remember_recipients: rememberRecipients } = body;
        const approved = await approvals.approve(scope, params.id, { version, note, rememberRecipients });
        reply.code('draft' in approved ? 200 : 201);
        return 'draft' in approved ? presentDraft(approved) : messageViews.present(request, reply, approved);
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

function presentPreview(
  { draft, fromAddress, subject, text: plainText, html, requesterProblem }: DraftPreview,
  comparison: DraftComparison | null,
  seenVersion: number,
): Static<typeof DraftPreviewRecord> {
  const review = draft.approvalReview ?? EMPTY_REVIEW;
  const { signals, recipients, changes } = review;
  const addresses = (list: { email: string }[]) => list.map(({ email }) => email);
  return {
    object: 'draft_preview',
    draft_id: draft.id,
    version: draft.version,
    from_address: fromAddress,
    to_addresses: addresses(draft.to),
    cc_addresses: addresses(draft.cc),
    bcc_addresses: addresses(draft.bcc),
    subject,
    text_body: plainText,
    html_body: html,
    signals,
    recipients,
    ...presentAlarm(review),
    requester_problem: requesterProblem,
    changes: changes.filter(({ version }) => version > seenVersion),
    comparison: comparison && {
      seen_version: comparison.fromVersion,
      version: comparison.toVersion,
      differences: comparison.fields.map(({ field, lines }) => ({
        field,
        lines: lines.map(({ change, text: line }) => ({ change, line })),
      })),
      too_long: comparison.isTextTooLong,
    },
  };
}

const EMPTY_REVIEW: ApprovalReview = { signals: [], recipients: [], changes: [] };

function presentRecipient(recipient: ApprovedRecipient): Static<typeof ApprovedRecipientRecord> {
  return {
    object: 'approved_recipient',
    id: recipient.id,
    inbox_id: recipient.inboxId,
    email: recipient.email,
    approved_by: recipient.approvedBy,
    expires_at: recipient.expiresAt.toISOString(),
    created_at: recipient.createdAt.toISOString(),
  };
}
