import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import {
  ATTEMPT_STATES,
  type MessageTimelineService,
  STEP_TYPES,
} from '../../domain/messages/message-timeline.service.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  problems,
  ref,
  resource,
  strictObject,
  timestamp,
} from '../schemas.ts';

const MessageParams = strictObject({ id: id('Message id (msg_…).') });

const Attempt = strictObject({
  number: Type.Integer({ minimum: 0 }),
  state: enumOf(ATTEMPT_STATES, {
    description: 'ambiguous: it is unknown whether the relay accepted the message.',
  }),
  finished_at: nullableTimestamp(),
});

export const MessageTimeline = resource(
  'message_timeline',
  {
    message_id: id('The message (msg_…).'),
    steps: Type.Array(
      strictObject({
        type: enumOf(STEP_TYPES, {
          description:
            'received, parsed: of a received message. accepted (by the API), queued, attempt (one SMTP transaction with the relay), sent (the relay accepted it) and outcomes: of a sent one.',
        }),
        at: timestamp(),
        recipient: nullableText(1024, { description: 'Null if the step concerns the whole message.' }),
        attempt: Type.Unsafe<Static<typeof Attempt> | null>({
          ...Attempt,
          type: ['object', 'null'],
          description: 'Null except for an attempt.',
        }),
        status_code: nullableText(32, { description: 'Enhanced status code (RFC 3463).' }),
        detail: nullableText(8192, {
          description:
            'The response of the relay, the reason of a failure, or where a received message came from.',
        }),
        next: nullableText(512, { description: 'What to do about a failure.' }),
      }),
      { maxItems: 3_000, description: 'Oldest first.' },
    ),
    truncated: Type.Boolean({ description: 'The oldest attempts are missing.' }),
  },
  { $id: 'MessageTimeline', title: 'MessageTimeline' },
);

export const timelineRoutes =
  ({ messageTimelines }: { messageTimelines: MessageTimelineService }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/messages/:id/timeline',
      {
        config: { permission: 'messages:read' },
        schema: {
          operationId: 'messages.getTimeline',
          summary: 'Get what happened to a message, step by step',
          description:
            'Of a sent message: when it was accepted, each attempt with the response of the relay, and the outcome of each recipient. Of a received one: when it arrived and was parsed.',
          tags: ['Messages'],
          params: MessageParams,
          response: { 200: ref(MessageTimeline), ...problems() },
        },
      },
      async ({ scope, params }) => {
        const { messageId, steps, isTruncated } = await messageTimelines.get(scope, params.id);
        return {
          object: 'message_timeline' as const,
          message_id: messageId,
          steps: steps.map(({ type, at, recipient, attempt, statusCode, detail, next }) => ({
            type,
            at: at.toISOString(),
            recipient,
            attempt: attempt && {
              number: attempt.number,
              state: attempt.state,
              finished_at: attempt.finishedAt?.toISOString() ?? null,
            },
            status_code: statusCode,
            detail: detail?.slice(0, 8_192) ?? null,
            next,
          })),
          truncated: isTruncated,
        };
      },
    );
    done();
  };
