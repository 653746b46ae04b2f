import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { MessageDetails } from '../../domain/messages/message-details.ts';
import type { MessageCriteria, MessageWaitService } from '../../domain/messages/message-wait.service.ts';
import type { OutcomeWaitService } from '../../domain/outbound/outcome-wait.service.ts';
import { invalid } from '../../platform/errors.ts';
import { isId } from '../../platform/ids.ts';
import { answerWhenFound, TimedOut, timeout } from '../plugins/held-answers.ts';
import type { OpenResponses } from '../plugins/open-responses.ts';
import { enumOf, id, MAX_ID_LENGTH, problems, ref, strictObject, text } from '../schemas.ts';
import { parseTime } from '../time.ts';
import { addressFilter, readAddressFilter } from './address-filter.schemas.ts';
import { type MessageViews, textParameters } from './message-views.ts';
import { MessageRecord } from './messages.schemas.ts';

const InboxParams = strictObject({ inboxId: id('Inbox id (inb_…).') });
const ThreadParams = strictObject({ id: id('Thread id (thr_…).') });
const MessageParams = strictObject({ id: id('Message id (msg_…).') });

const TimeoutQuery = strictObject({ ...timeout, ...textParameters });
const WaitQuery = strictObject({
  ...timeout,
  ...textParameters,
  for: Type.Optional(
    enumOf(['code'], { description: 'code: only a message with a one-time code (codes is not empty).' }),
  ),
  from: Type.Optional(addressFilter('The sender')),
  subject: Type.Optional(text(998, { minLength: 1, description: 'Part of the subject, case-insensitive.' })),
  since: Type.Optional(
    text(MAX_ID_LENGTH, {
      minLength: 1,
      description:
        'Id of the last message seen, or a time: a message that arrived later is returned immediately. Default: 30 seconds ago. In a loop, pass the id of the last message: none is missed or repeated.',
    }),
  ),
});
type WaitQuery = Static<typeof WaitQuery>;

const Found = Type.Union([ref(MessageRecord), ref(TimedOut)], {
  description: 'The message, or timed_out.',
});

export interface WaitRoutesOptions {
  messageWaits: MessageWaitService;
  outcomeWaits: OutcomeWaitService;
  messageViews: MessageViews;
  openResponses: OpenResponses;
  /** How often the credential is rechecked. */
  heartbeatMs: number;
}

export const waitRoutes =
  ({
    messageWaits,
    outcomeWaits,
    messageViews,
    openResponses,
    heartbeatMs,
  }: WaitRoutesOptions): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const options = { openResponses, heartbeatMs };
    const answer = (request: FastifyRequest, reply: FastifyReply) => (found: MessageDetails) =>
      messageViews.presentRead(request, reply, found);
    const config = { permission: 'messages:read', heldOpen: true } as const;

    app.get(
      '/inboxes/:inboxId/messages/wait',
      {
        exposeHeadRoute: false,
        config,
        schema: {
          operationId: 'messages.wait',
          summary: 'Wait for an incoming message',
          tags: ['Messages'],
          params: InboxParams,
          querystring: WaitQuery,
          response: { 200: Found, ...problems() },
        },
      },
      async (request, reply) => {
        const { scope, params, query } = request;
        const wait = await messageWaits.begin(scope, params.inboxId, readCriteria(query));
        const held = { request, reply, timeoutSeconds: query.timeout_seconds, ...options };
        return answerWhenFound(wait, answer(request, reply), held);
      },
    );

    app.get(
      '/threads/:id/wait',
      {
        exposeHeadRoute: false,
        config,
        schema: {
          operationId: 'threads.wait',
          summary: 'Wait for an incoming message in a thread',
          description: 'For example for the answer to a message that was sent.',
          tags: ['Threads'],
          params: ThreadParams,
          querystring: WaitQuery,
          response: { 200: Found, ...problems() },
        },
      },
      async (request, reply) => {
        const { scope, params, query } = request;
        const wait = await messageWaits.beginInThread(scope, params.id, readCriteria(query));
        const held = { request, reply, timeoutSeconds: query.timeout_seconds, ...options };
        return answerWhenFound(wait, answer(request, reply), held);
      },
    );

    app.get(
      '/messages/:id/wait',
      {
        exposeHeadRoute: false,
        config,
        schema: {
          operationId: 'messages.waitUntilSettled',
          summary: 'Wait until the outcome of a message is known',
          description:
            'Answers when every recipient is settled: delivered, bounced, complained, suppressed, rejected, or sent by a relay that reports no deliveries. A canceled, failed or received message is settled.',
          tags: ['Messages'],
          params: MessageParams,
          querystring: TimeoutQuery,
          response: { 200: Found, ...problems() },
        },
      },
      async (request, reply) => {
        const { scope, params, query } = request;
        const wait = await outcomeWaits.begin(scope, params.id);
        const held = { request, reply, timeoutSeconds: query.timeout_seconds, ...options };
        return answerWhenFound(wait, answer(request, reply), held);
      },
    );
    done();
  };

function readCriteria({ from: sender, subject, since, for: wanted }: WaitQuery): MessageCriteria {
  const from = readAddressFilter('from', sender);
  const criteria = { from, subject, hasCode: wanted === 'code' };
  if (since === undefined) return criteria;
  if (isId('message', since)) return { ...criteria, since: { messageId: since } };
  if (!/^\d/.test(since))
    throw invalid(
      '/query/since',
      'must be the id of a message (msg_…), or a valid time',
      'Use the id of the last message that you saw, or a time such as 2026-11-21T09:30:00.000Z.',
    );
  return { ...criteria, since: { time: parseTime('/query/since', since) } };
}
