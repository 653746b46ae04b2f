import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { LabelService } from '../../domain/messages/label.service.ts';
import { invalid } from '../../platform/errors.ts';
import { ItemError, presentItemError } from '../item-error.ts';
import { changeProblems, id, postProblems, ref, resource, strictObject } from '../schemas.ts';
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

const MAX_LABELED_MESSAGES = 100;
const changedLabels = (description: string) =>
  Type.Array(label(), { maxItems: 50, uniqueItems: true, default: [], description });

export const ChangeLabelsOfMany = strictObject(
  {
    ids: Type.Array(id('Message id (msg_…).'), {
      minItems: 1,
      maxItems: MAX_LABELED_MESSAGES,
      uniqueItems: true,
      description: 'The messages to change.',
    }),
    add: changedLabels('Labels to add. `spam` hides a message.'),
    remove: changedLabels('Labels to remove; a label that a message does not have is ignored.'),
  },
  { $id: 'ChangeLabelsOfMany', title: 'ChangeLabelsOfMany' },
);

export const LabelResults = resource(
  'label_results',
  {
    data: Type.Array(
      strictObject({
        message_id: id('Message id (msg_…), as in the request.'),
        error: ItemError,
      }),
      { maxItems: MAX_LABELED_MESSAGES, description: 'One result for each id, in the order of the request.' },
    ),
  },
  { $id: 'LabelResults', title: 'LabelResults' },
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
      '/messages/labels',
      {
        // The answer has no labels, so it needs no permission to read.
        config: { permission: 'messages:write', readPermission: 'messages:write' },
        schema: {
          operationId: 'messages.changeLabels',
          summary: 'Add and remove labels of many messages',
          description:
            'One transaction. Each message is changed or refused by itself: an unknown id has the error not_found in its result, and the others are changed. A label in both lists is added.',
          tags: ['Messages'],
          body: ref(ChangeLabelsOfMany),
          response: { 200: ref(LabelResults), ...postProblems() },
        },
      },
      async ({ scope, body: { ids, add, remove } }) => {
        if (add.length + remove.length === 0)
          throw invalid(
            '/body/add',
            'names no label, and neither does remove',
            'Name a label to add or remove.',
          );
        const refusals = await labels.changeMany(scope, ids, { add, remove });
        return {
          object: 'label_results' as const,
          data: ids.map((messageId, index) => ({
            message_id: messageId,
            error: presentItemError(refusals[index]),
          })),
        };
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
