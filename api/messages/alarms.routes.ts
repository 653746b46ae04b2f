import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { AlarmService } from '../../domain/messages/alarm.service.ts';
import { id, NoContent, postProblems, ref, strictObject } from '../schemas.ts';
import { type MessageViews, ViewQuery } from './message-views.ts';
import { MESSAGE_RESPONSE, MessageRecord } from './messages.schemas.ts';

const MessageParams = strictObject({ id: id('Message id (msg_…).') });

export const alarmRoutes =
  ({
    alarms,
    messageViews,
  }: {
    alarms: AlarmService;
    messageViews: MessageViews;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/messages/:id/injection/dismiss',
      {
        config: { permission: 'messages:approve', ...MESSAGE_RESPONSE },
        schema: {
          operationId: 'messages.dismissInjection',
          summary: 'Dismiss the injection alarm of a message',
          description:
            'For people, not for keys. Ends what the policy after_alarm demands because of this message; drafts that wait for approval already still wait. Answers 204 if the message was deleted meanwhile.',
          tags: ['Messages'],
          params: MessageParams,
          querystring: ViewQuery,
          response: { 200: ref(MessageRecord), 204: NoContent, ...postProblems() },
        },
      },
      async (request, reply) => {
        const dismissed = await alarms.dismiss(request.scope, request.params.id);
        if (dismissed === null) return reply.code(204).send(null);
        return messageViews.present(request, reply, dismissed);
      },
    );
    done();
  };
