import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { MessageDetails } from '../../domain/messages/message-details.ts';
import type {
  MessageCriteria,
  MessageWait,
  MessageWaitService,
} from '../../domain/messages/message-wait.service.ts';
import type { OutcomeWaitService } from '../../domain/outbound/outcome-wait.service.ts';
import { isId } from '../../platform/ids.ts';
import { type OpenResponses, readRefusal } from '../plugins/open-responses.ts';
import { enumOf, id, MAX_ID_LENGTH, problems, ref, resource, strictObject, text } from '../schemas.ts';
import { parseTime } from '../time.ts';
import { addressFilter, readAddressFilter } from './address-filter.schemas.ts';
import { type MessageViews, textParameters } from './message-views.ts';
import { MessageRecord } from './messages.schemas.ts';

const InboxParams = strictObject({ inboxId: id('Inbox id (inb_…).') });
const ThreadParams = strictObject({ id: id('Thread id (thr_…).') });
const MessageParams = strictObject({ id: id('Message id (msg_…).') });

const timeout = {
  timeout_seconds: Type.Integer({
    minimum: 1,
    maximum: 300,
    default: 30,
    description: 'How long to wait; proxies must allow responses that take this long.',
  }),
};
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

export const TimedOut = resource(
  'timeout',
  { timed_out: Type.Literal(true) },
  {
    $id: 'TimedOut',
    title: 'TimedOut',
    description: 'Nothing happened in time, or the service is restarting: call again.',
  },
);

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
    const options = { messageViews, openResponses, heartbeatMs };
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
        return answerWhenFound(wait, { request, reply, timeoutSeconds: query.timeout_seconds, ...options });
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
        return answerWhenFound(wait, { request, reply, timeoutSeconds: query.timeout_seconds, ...options });
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
        return answerWhenFound(wait, { request, reply, timeoutSeconds: query.timeout_seconds, ...options });
      },
    );
    done();
  };

interface HeldRequest {
  request: FastifyRequest;
  reply: FastifyReply;
  timeoutSeconds: number;
  messageViews: MessageViews;
  openResponses: OpenResponses;
  heartbeatMs: number;
}

async function answerWhenFound(
  wait: MessageWait,
  { request, reply, timeoutSeconds, messageViews, openResponses, heartbeatMs }: HeldRequest,
): Promise<Static<typeof Found>> {
  try {
    const signal = openResponses.admit(request, reply);
    signal.addEventListener('abort', wait.close, { once: true });
    const deadline = performance.now() + timeoutSeconds * 1000;
    const found = await waitUntil(deadline, { wait, request, signal, heartbeatMs });
    return found
      ? await messageViews.presentRead(request, reply, found)
      : { object: 'timeout', timed_out: true };
  } finally {
    wait.close();
  }
}

interface OpenWait {
  wait: MessageWait;
  request: FastifyRequest;
  signal: AbortSignal;
  heartbeatMs: number;
}

async function waitUntil(
  deadline: number,
  { wait, request, signal, heartbeatMs }: OpenWait,
): Promise<MessageDetails | undefined> {
  for (;;) {
    const remainingMs = deadline - performance.now();
    if (remainingMs <= 0 || signal.aborted) return undefined;
    const found = await wait.next(Math.min(remainingMs, heartbeatMs));
    const refusal = readRefusal(signal);
    if (refusal) throw refusal;
    if (found) return found;
    if (remainingMs > heartbeatMs && !signal.aborted) await request.recheckAccess();
  }
}

function readCriteria({ from: sender, subject, since, for: wanted }: WaitQuery): MessageCriteria {
  const from = readAddressFilter('from', sender);
  const criteria = { from, subject, hasCode: wanted === 'code' };
  if (since === undefined) return criteria;
  if (isId('message', since)) return { ...criteria, since: { messageId: since } };
  return { ...criteria, since: { time: parseTime('/query/since', since) } };
}
