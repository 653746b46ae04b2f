import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { DeletionService } from '../../domain/messages/deletion.service.ts';
import { changeProblems, id, NoContent, strictObject } from '../schemas.ts';

const MessageParams = strictObject({ id: id('Message id (msg_…).') });
const ThreadParams = strictObject({ id: id('Thread id (thr_…).') });

export const deletionRoutes =
  ({ deletions }: { deletions: DeletionService }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.delete(
      '/messages/:id',
      {
        config: { permission: 'messages:write' },
        schema: {
          operationId: 'messages.delete',
          summary: 'Delete a message permanently',
          description: 'Also deletes its files and raw bytes. Refused while the message is being sent.',
          tags: ['Messages'],
          params: MessageParams,
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async (request, reply) => {
        await deletions.deleteMessage(request.scope, request.params.id);
        return reply.code(204).send(null);
      },
    );

    app.delete(
      '/threads/:id',
      {
        config: { permission: 'messages:write' },
        schema: {
          operationId: 'threads.delete',
          summary: 'Delete a thread and all its messages permanently',
          description:
            'Refused while one of its messages is being sent. The id of a merged thread deletes the thread it was merged into.',
          tags: ['Threads'],
          params: ThreadParams,
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async (request, reply) => {
        await deletions.deleteThread(request.scope, request.params.id);
        return reply.code(204).send(null);
      },
    );
    done();
  };
