import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { LabelService } from '../../domain/messages/label.service.ts';
import { changeProblems, id, postProblems, ref, strictObject } from '../schemas.ts';
import { singleLineText } from './addresses.ts';
import { label } from './content.schemas.ts';
import { type MessageViews, ViewQuery } from './message-views.ts';
import { MESSAGE_RESPONSE, MessageRecord } from './messages.schemas.ts';

const MessageParams = strictObject({ id: id('Message id (msg_…).') });
const LabelParams = strictObject({
  id: id('Message id (msg_…).'),
  label: singleLineText(64, { minLength: 1, description: 'The label to remove.' }),
});

export const Labels = strictObject(
  {
    labels: Type.Array(label(), {
      minItems: 1,
      maxItems: 50,
      uniqueItems: true,
      description: '`spam` and `blocked` hide a message: it is listed only by a request for that label.',
    }),
  },
  { $id: 'ChangeLabels', title: 'ChangeLabels' },
);

export const labelRoutes =
  ({
    labels,
    messageViews,
  }: {
    labels: LabelService;
    messageViews: MessageViews;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/messages/:id/labels',
      {
        config: { permission: 'messages:write', ...MESSAGE_RESPONSE },
        schema: {
          operationId: 'messages.addLabels',
          summary: 'Add labels to a message',
          tags: ['Messages'],
          params: MessageParams,
          querystring: ViewQuery,
          body: ref(Labels),
          response: { 200: ref(MessageRecord), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { scope, params, body } = request;
        return messageViews.present(request, reply, await labels.add(scope, params.id, body.labels));
      },
    );

    app.post(
      '/messages/:id/labels/remove',
      {
        config: { permission: 'messages:write', ...MESSAGE_RESPONSE },
        schema: {
          operationId: 'messages.removeLabels',
          summary: 'Remove labels from a message',
          tags: ['Messages'],
          params: MessageParams,
          querystring: ViewQuery,
          body: ref(Labels),
          response: { 200: ref(MessageRecord), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { scope, params, body } = request;
        return messageViews.present(request, reply, await labels.remove(scope, params.id, body.labels));
      },
    );

    app.delete(
      '/messages/:id/labels/:label',
      {
        config: { permission: 'messages:write', ...MESSAGE_RESPONSE },
        schema: {
          operationId: 'messages.removeLabel',
          summary: 'Remove one label from a message',
          tags: ['Messages'],
          params: LabelParams,
          querystring: ViewQuery,
          response: { 200: ref(MessageRecord), ...changeProblems() },
        },
      },
      async (request, reply) => {
        const { scope, params } = request;
        return messageViews.present(request, reply, await labels.remove(scope, params.id, [params.label]));
      },
    );
    done();
  };
