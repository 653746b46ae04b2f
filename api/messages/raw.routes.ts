import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { RawMessageService } from '../../domain/messages/raw-message.service.ts';
import { id, problems, ref, resource, strictObject, text, timestamp } from '../schemas.ts';

const MessageParams = strictObject({ id: id('Message id (msg_…).') });

export const RawMessage = resource(
  'raw_message',
  {
    download_url: text(8192, { description: 'Works without a credential until expires_at.' }),
    expires_at: timestamp('When download_url expires; request a new one.'),
    size_bytes: Type.Integer({ minimum: 0 }),
  },
  { $id: 'RawMessage', title: 'RawMessage' },
);

export const rawRoutes =
  ({ rawMessages }: { rawMessages: RawMessageService }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/messages/:id/raw',
      {
        config: { permission: 'messages:read' },
        schema: {
          operationId: 'messages.getRaw',
          summary: 'Get a link to the exact bytes of a message',
          description:
            'As sent or received (RFC 5322). Available for an outbound message once it is dispatched.',
          tags: ['Messages'],
          params: MessageParams,
          response: { 200: ref(RawMessage), ...problems(409) },
        },
      },
      async (request) => {
        const { link, sizeBytes } = await rawMessages.get(request.scope, request.params.id);
        return {
          object: 'raw_message' as const,
          download_url: link.url,
          expires_at: link.expiresAt.toISOString(),
          size_bytes: sizeBytes,
        };
      },
    );
    done();
  };
