import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { MessageDetails } from '../../domain/messages/message-details.ts';
import type {
  MessageCriteria,
  MessageWait,
  MessageWaitService,
} from '../../domain/messages/message-wait.service.ts';
import { isId } from '../../platform/ids.ts';
import type { OpenResponses } from '../plugins/open-responses.ts';
import { id, MAX_ID_LENGTH, problems, ref, strictObject, text } from '../schemas.ts';
import { parseTime } from '../time.ts';
import { addressFilter, readAddressFilter } from './address-filter.ts';
import { MessageRecord, presentMessage } from './messages.schemas.ts';

const InboxParams = strictObject({ inboxId: id('Inbox id (inb_…).') });

const WaitQuery = strictObject({
  timeout_seconds: Type.Integer({
    minimum: 1,
    maximum: 300,
    default: 30,
    description: 'How long to wait; proxies must allow responses that take this long.',
  }),
  from: Type.Optional(addressFilter('The sender')),
  subject: Type.Optional(text(998, { minLength: 1, description: 'Part of the subject, case-insensitive.' })),
  since: Type.Optional(
    text(MAX_ID_LENGTH, {
      minLength: 1,
      description:
        'Id of the last message seen, or a time: a message that arrived later is returned immediately. With an id, no message is missed between two calls.',
    }),
  ),
});
type WaitQuery = Static<typeof WaitQuery>;

const TimedOut = strictObject(
  { timed_out: Type.Literal(true) },
  { description: 'No message arrived in time, or the service is restarting: call again.' },
);

const Found = Type.Union([ref(MessageRecord), TimedOut], {
  description: 'The message, or timed_out if none arrived.',
});

export interface WaitRoutesOptions {
  messageWaits: MessageWaitService;
  openResponses: OpenResponses;
  /** How often the credential is rechecked. */
  heartbeatMs: number;
}

export const waitRoutes =
  ({ messageWaits, openResponses, heartbeatMs }: WaitRoutesOptions): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/inboxes/:inboxId/messages/wait',
      {
        exposeHeadRoute: false,
        config: { permission: 'messages:read', heldOpen: true },
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
        try {
          const signal = openResponses.admit(request, reply);
          signal.addEventListener('abort', wait.close, { once: true });
          const deadline = performance.now() + query.timeout_seconds * 1000;
          const found = await waitUntil(deadline, { wait, request, signal, heartbeatMs });
          return found ? presentMessage(found) : ({ timed_out: true } as const);
        } finally {
          wait.close();
        }
      },
    );
    done();
  };

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
    if (found) return found;
    if (remainingMs > heartbeatMs && !signal.aborted) await request.recheckAccess();
  }
}

function readCriteria({ from: sender, subject, since }: WaitQuery): MessageCriteria {
  const from = readAddressFilter('from', sender);
  if (since === undefined) return { from, subject };
  if (isId('message', since)) return { from, subject, since: { messageId: since } };
  return { from, subject, since: { time: parseTime('/query/since', since) } };
}
