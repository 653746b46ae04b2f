import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { ListService } from '../../domain/deliverability/list.service.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import { changeProblems, NoContent, postProblems, problems, ref, strictObject, text } from '../schemas.ts';
import {
  CreateListEntry,
  entryScopeFields,
  LIST_ENTRY_RESPONSE,
  ListEntryRecord,
  presentListEntry,
} from './lists.schemas.ts';

// Text instead of an enum: an unknown list is an unknown path, so the response is 404.
const listNameFields = {
  direction: text(128, { description: 'send or receive.' }),
  effect: text(128, { description: 'allow or block.' }),
};
const ListParams = strictObject(listNameFields);
const EntryParams = strictObject({
  ...listNameFields,
  entry: text(320, { minLength: 1, description: 'The entry, percent-encoded.' }),
});

export const listRoutes =
  ({
    allowBlockLists,
    lists,
  }: {
    allowBlockLists: ListService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/lists/:direction/:effect',
      {
        config: { permission: 'lists:read' },
        schema: {
          operationId: 'lists.list',
          summary: 'List the entries of an allow or block list',
          description:
            'All entries that apply to what the credential can access; with env_id or inbox_id only the entries of that scope.',
          tags: ['Deliverability'],
          params: ListParams,
          querystring: strictObject({ ...pageQuery, ...entryScopeFields }),
          response: { 200: listOf(ref(ListEntryRecord)), ...problems() },
        },
      },
      async (request) => {
        const { env_id: environmentId, inbox_id: inboxId } = request.query;
        const page = await allowBlockLists.list(
          request.scope,
          request.params,
          { environmentId, inboxId },
          lists.read(request),
        );
        return lists.present(request, page, presentListEntry);
      },
    );

    app.post(
      '/lists/:direction/:effect',
      {
        config: { permission: 'lists:manage', ...LIST_ENTRY_RESPONSE },
        schema: {
          operationId: 'lists.add',
          summary: 'Allow or block an address or a domain',
          description:
            'The narrowest scope that matches an address applies; within one scope, block takes precedence over allow. Returns 200 if the entry already exists.',
          tags: ['Deliverability'],
          params: ListParams,
          body: ref(CreateListEntry),
          response: { 200: ref(ListEntryRecord), 201: ref(ListEntryRecord), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { entry, authenticated, env_id: environmentId, inbox_id: inboxId } = request.body;
        const added = await allowBlockLists.add(request.scope, request.params, {
          entry,
          authenticated,
          environmentId,
          inboxId,
        });
        reply.code(added.created ? 201 : 200);
        return presentListEntry(added.entry);
      },
    );

    app.delete(
      '/lists/:direction/:effect/:entry',
      {
        config: { permission: 'lists:manage' },
        schema: {
          operationId: 'lists.remove',
          summary: 'Remove an entry from a list',
          tags: ['Deliverability'],
          params: EntryParams,
          querystring: strictObject(entryScopeFields),
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async (request, reply) => {
        const { env_id: environmentId, inbox_id: inboxId } = request.query;
        const { entry } = request.params;
        await allowBlockLists.remove(request.scope, request.params, { entry, environmentId, inboxId });
        return reply.code(204).send(null);
      },
    );
    done();
  };
