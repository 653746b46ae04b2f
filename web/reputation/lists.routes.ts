import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { ActorNameService } from '../../domain/audit/actor-names.ts';
import type { EntryScope, ListService } from '../../domain/deliverability/list.service.ts';
import type { Scope } from '../../domain/identity/scope.ts';
import type { InboxService } from '../../domain/inboxes/inbox.service.ts';
import { type AppError, invalid } from '../../platform/errors.ts';
import { listQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { describeEntry, LIST_KEYS, LISTS, type ListKey } from './reputation-words.ts';
import { reputationTabs } from './tabs.ts';

export interface ListPageDependencies {
  pages: Pages;
  allowBlockLists: ListService;
  inboxes: InboxService;
  actorNames: ActorNameService;
}

const list = enumOf(LIST_KEYS);

/** The allow and block lists, one tab each. */
export const listPages =
  ({ pages, allowBlockLists, inboxes, actorNames }: ListPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const pathOf = (request: FastifyRequest, key: ListKey) =>
      pages.link(request, '/reputation/lists', { list: key });

    /** A rejected form names its list in its body. */
    async function show(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const { scope } = request;
      const named = { ...(request.query as object), ...(request.body as object) } as { list?: ListKey };
      const key = named.list && Object.hasOwn(LISTS, named.list) ? named.list : 'send-block';
      const { direction, effect } = LISTS[key];
      const page = await allowBlockLists.list(
        scope,
        { direction, effect },
        {},
        pages.readPage(request, { limit: 50 }),
      );
      const inboxNames = await actorNames.find(
        scope,
        page.items.map(({ inboxId }) => inboxId),
      );
      const environments = (request.shell?.environments ?? []).map(({ id, name }) => [id, name] as const);
      return pages.send(request, reply, {
        template: 'reputation/lists',
        title: 'Allow and block lists',
        problem,
        data: {
          tabs: reputationTabs(request, pages, 'lists'),
          key,
          list: LISTS[key],
          lists: LIST_KEYS.map((each) => [pathOf(request, each), LISTS[each].name, each === key]),
          listEntries: page.items.map((entry) =>
            describeEntry(entry, new Map([...environments, ...inboxNames])),
          ),
          next: pages.nextPage(request, page),
          environmentId: scope.environmentId,
          environments,
        },
        apiCall: { path: `/lists/${direction}/${effect}` },
      });
    }

    app.get(
      '/reputation/lists',
      {
        config: { permission: 'lists:read' },
        schema: { operationId: 'pages.lists', querystring: listQuery({ list: Type.Optional(list) }) },
      },
      (request, reply) => show(request, reply),
    );

    pages.form(app, '/reputation/lists', {
      config: { permission: 'lists:manage' },
      schema: {
        operationId: 'pages.addListEntry',
        body: strictObject({
          list,
          entry: text(320),
          applies_to: enumOf(['organization', 'environment', 'inbox']),
          inbox: text(320, { default: '' }),
          authenticated: Type.Optional(Type.Literal('on')),
        }),
      },
      async work({ scope, body }) {
        const { direction, effect } = LISTS[body.list];
        const place = await findPlace(inboxes, scope, body);
        const authenticated = body.list === 'receive-allow' ? body.authenticated === 'on' : undefined;
        return allowBlockLists.add(
          scope,
          { direction, effect },
          { entry: body.entry.trim(), authenticated, ...place },
        );
      },
      show,
      done: (request, reply, { created }) =>
        pages.seeOther(
          reply,
          pathOf(request, request.body.list),
          created ? 'list-entry-added' : 'list-entry-exists',
        ),
    });

    pages.form(app, '/reputation/lists/remove', {
      config: { permission: 'lists:manage' },
      schema: {
        operationId: 'pages.removeListEntry',
        body: strictObject({
          list,
          entry: text(320),
          environment_id: text(64, { default: '' }),
          inbox_id: text(64, { default: '' }),
        }),
      },
      work({ scope, body }) {
        const { direction, effect } = LISTS[body.list];
        return allowBlockLists.remove(
          scope,
          { direction, effect },
          {
            entry: body.entry,
            ...(body.environment_id ? { environmentId: body.environment_id } : {}),
            ...(body.inbox_id ? { inboxId: body.inbox_id } : {}),
          },
        );
      },
      show,
      done: (request, reply) =>
        pages.seeOther(reply, pathOf(request, request.body.list), 'list-entry-removed'),
    });
    done();
  };

/** Where a new entry applies. @throws AppError `validation_error` at the field of the inbox. */
async function findPlace(
  inboxes: InboxService,
  scope: Scope,
  { applies_to: appliesTo, inbox: address }: { applies_to: string; inbox: string },
): Promise<EntryScope> {
  const { environmentId } = scope;
  if (appliesTo === 'organization') return {};
  if (appliesTo === 'environment') return { environmentId };
  const email = address.trim();
  const found = email && (await inboxes.list(scope, { email }, { limit: 1, order: 'desc' })).items[0];
  if (!found)
    throw invalid('/body/inbox', 'is not an inbox here', 'Enter the address of one of your inboxes.');
  return { environmentId, inboxId: found.id };
}
