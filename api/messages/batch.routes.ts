import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { AttachmentService } from '../../domain/attachments/attachment.service.ts';
import type { FileToAttach } from '../../domain/attachments/stored-file.ts';
import type { DraftDetails, DraftService } from '../../domain/drafts/draft.service.ts';
import type { MessageDetails } from '../../domain/messages/message-details.ts';
import type { SendService } from '../../domain/outbound/send.service.ts';
import type { BatchResult, SendBatch } from '../../domain/outbound/send-batch.ts';
import { AppError } from '../../platform/errors.ts';
import { storeEntries } from '../attachments/body-files.ts';
import { ItemError, presentItemError } from '../item-error.ts';
import { id, nullableText, postProblems, ref, resource, strictObject } from '../schemas.ts';
import { CONTENT_BODY_LIMIT_BYTES } from './content.schemas.ts';
import { readContent, readSendAt } from './content.ts';
import { SendMessage } from './messages.schemas.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The files of each message of a batch, or why they are refused; undefined for other requests. */
    filesOfBatch: (FileToAttach[] | AppError)[] | undefined;
  }
}

const InboxParams = strictObject({ inboxId: id('Inbox id (inb_…).') });
const MAX_BATCH_MESSAGES = 100;

export const SendMessages = strictObject(
  {
    messages: Type.Array(ref(SendMessage), {
      minItems: 1,
      maxItems: MAX_BATCH_MESSAGES,
      description: 'Each as for a single send.',
    }),
  },
  { $id: 'SendMessages', title: 'SendMessages' },
);

export const BatchResults = resource(
  'batch_results',
  {
    data: Type.Array(
      strictObject({
        message_id: nullableText(128, { description: 'The message that was accepted; null otherwise.' }),
        thread_id: nullableText(128, { description: 'The thread of the message; null without one.' }),
        draft_id: nullableText(128, {
          description:
            'The draft that waits for send_at or for approval, instead of a message (GET /api/v1/drafts/{id}/wait); null otherwise.',
        }),
        error: ItemError,
      }),
      {
        maxItems: MAX_BATCH_MESSAGES,
        description: 'One result for each message, in the order of the request.',
      },
    ),
  },
  { $id: 'BatchResults', title: 'BatchResults' },
);

export const batchRoutes =
  ({
    sends,
    drafts,
    attachments,
    sendBatch,
  }: {
    sends: SendService<DraftDetails>;
    drafts: DraftService;
    attachments: AttachmentService;
    sendBatch: SendBatch;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/inboxes/:inboxId/messages/batch',
      {
        bodyLimit: CONTENT_BODY_LIMIT_BYTES,
        config: {
          permission: 'messages:send',
          // The answer has only ids, so it needs no permission to read.
          readPermission: 'messages:send',
          announcesRefusals: true,
          prepare: storeFilesOfBatch(attachments),
        },
        schema: {
          operationId: 'messages.sendBatch',
          summary: 'Send up to 100 messages',
          description:
            'Each message is accepted or refused by itself, as if it was sent alone: it passes the same checks and caps, and counts as one message. All are stored in one transaction, so a repeat with the same Idempotency-Key returns the same results and sends nothing twice, also after a failure in the middle. A body that violates the schema is refused as a whole.',
          tags: ['Messages'],
          params: InboxParams,
          body: ref(SendMessages),
          response: { 200: ref(BatchResults), ...postProblems() },
        },
      },
      async (request) => {
        const { scope, params, body, filesOfBatch = [] } = request;
        const { inboxId } = params;
        const items = body.messages.map((message, index) => ({ message, files: filesOfBatch[index] ?? [] }));
        const results = await sendBatch.sendEach(
          scope,
          { inboxId, items },
          async (as, { message, files }) => {
            if (files instanceof AppError) throw files;
            const content = readContent(message);
            const sendAt = readSendAt(message);
            return sendAt
              ? drafts.schedule(as, inboxId, { ...content, sendAt, files })
              : sends.send(as, inboxId, content, files);
          },
        );
        return { object: 'batch_results' as const, data: results.map(presentResult) };
      },
    );
    done();
  };

/** For `config.prepare`: as `storeBodyFiles`, but a file that is refused refuses only its message. */
function storeFilesOfBatch(attachments: AttachmentService): (request: FastifyRequest) => Promise<void> {
  return async (request) => {
    const { messages } = request.body as Static<typeof SendMessages>;
    request.filesOfBatch = await storeEntries(
      attachments,
      request.scope,
      messages.map((message) => message.attachments ?? []),
    );
  };
}

function presentResult({ sent, refusal }: BatchResult<MessageDetails | DraftDetails>) {
  const none = { message_id: null, thread_id: null, draft_id: null, error: null };
  if (refusal) return { ...none, error: presentItemError(refusal) };
  if ('draft' in sent) return { ...none, draft_id: sent.draft.id };
  return { ...none, message_id: sent.message.id, thread_id: sent.message.threadId };
}
