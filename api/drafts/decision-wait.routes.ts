import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import type { DecisionWaitService, DraftOutcome } from '../../domain/drafts/decision-wait.service.ts';
import { answerWhenFound, TimedOut, TimeoutQuery } from '../plugins/held-answers.ts';
import type { OpenResponses } from '../plugins/open-responses.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  problems,
  ref,
  resource,
  strictObject,
} from '../schemas.ts';
import { MAX_NOTE_LENGTH } from './drafts.schemas.ts';

const DraftParams = strictObject({ id: id('Draft id (drf_…).') });

export const DraftOutcomeRecord = resource(
  'draft_outcome',
  {
    draft_id: id('Draft id (drf_…).'),
    outcome: enumOf(['sent', 'approved', 'rejected', 'failed', 'deleted'], {
      description:
        'sent: it became message_id. approved: it is scheduled, and will be sent at send_at. rejected, failed: send_error says why, and the draft can be changed and sent again.',
    }),
    message_id: nullableText(128, { description: 'The message that the draft became; null unless sent.' }),
    send_at: nullableTimestamp(
      'When an approved or rejected draft is, or was, to be sent; null: at once. Null if it was sent: the message has the date.',
    ),
    send_error: nullableText(4096, { description: 'Why the draft was not sent; otherwise null.' }),
    note: nullableText(MAX_NOTE_LENGTH, { description: 'What the approver noted; otherwise null.' }),
  },
  { $id: 'DraftOutcome', title: 'DraftOutcome' },
);

const Found = Type.Union([ref(DraftOutcomeRecord), ref(TimedOut)], {
  description: 'What became of the draft, or timed_out.',
});

export const decisionWaitRoutes =
  ({
    decisionWaits,
    openResponses,
    heartbeatMs,
  }: {
    decisionWaits: DecisionWaitService;
    openResponses: OpenResponses;
    heartbeatMs: number;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/drafts/:id/wait',
      {
        exposeHeadRoute: false,
        config: { permission: 'drafts:read', heldOpen: true },
        schema: {
          operationId: 'drafts.wait',
          summary: 'Wait for the decision about a draft',
          description:
            'Answers when a person has approved or rejected the draft, and when it ends in another way: it is sent, expires, fails or is deleted. The answer for a draft that has been sent or decided is immediate.',
          tags: ['Drafts'],
          params: DraftParams,
          querystring: TimeoutQuery,
          response: { 200: Found, ...problems() },
        },
      },
      async (request, reply) => {
        const { scope, params, query } = request;
        const wait = await decisionWaits.begin(scope, params.id);
        const held = { request, reply, timeoutSeconds: query.timeout_seconds, openResponses, heartbeatMs };
        return answerWhenFound(wait, presentOutcome, held);
      },
    );
    done();
  };

function presentOutcome(found: DraftOutcome): Static<typeof DraftOutcomeRecord> {
  return {
    object: 'draft_outcome',
    draft_id: found.draftId,
    outcome: found.outcome,
    message_id: found.messageId,
    send_at: found.sendAt?.toISOString() ?? null,
    send_error: found.sendError,
    note: found.note,
  };
}
