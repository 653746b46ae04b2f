import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { enumOf, id, strictObject, text } from '../../api/schemas.ts';
import { EVENT_TYPES, type EventType } from '../../domain/events/event-types.ts';
import type { Scope } from '../../domain/identity/scope.ts';
import type { InboxService } from '../../domain/inboxes/inbox.service.ts';
import type { WebhookEndpoint } from '../../domain/webhooks/endpoint.entity.ts';
import type { CreatedEndpoint, WebhookEndpointService } from '../../domain/webhooks/endpoint.service.ts';
import { ENDPOINT_STATES } from '../../domain/webhooks/endpoint-health.ts';
import { type AppError, invalid } from '../../platform/errors.ts';
import { listQuery, OrganizationQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { describeEndpoint, EVENT_GROUPS, EVENT_WORDS, endpointName } from './words.ts';

export interface WebhookPageDependencies {
  pages: Pages;
  webhookEndpoints: WebhookEndpointService;
  inboxes: InboxService;
}

export const EndpointParams = strictObject({ id: id('Endpoint id (whe_…).') });

/** Checkboxes of one name: nothing, one value or several. */
const chosen = (item: ReturnType<typeof text>, maxItems: number) =>
  Type.Optional(Type.Unsafe<string | string[]>({ anyOf: [item, { type: 'array', items: item, maxItems }] }));
const EndpointForm = strictObject({
  url: text(2048),
  description: text(255),
  event: chosen(enumOf(EVENT_TYPES) as never, EVENT_TYPES.length),
  inbox: chosen(text(128), 200),
});

const PAGE = { limit: 50 };
/** Inboxes that the form offers. Endpoints of others are made through the API. */
const OFFERED_INBOXES = { limit: 100, order: 'asc' } as const;

/** The endpoints of an environment; one is created and changed by the same form. */
export const webhookPages =
  ({ pages, webhookEndpoints, inboxes }: WebhookPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/webhooks',
      {
        config: { permission: 'webhooks:read' },
        schema: {
          operationId: 'pages.webhooks',
          querystring: listQuery({ state: Type.Optional(enumOf(['', ...ENDPOINT_STATES])) }),
        },
      },
      async (request, reply) => {
        const state = request.query.state || undefined;
        const page = await webhookEndpoints.list(request.scope, { state }, pages.readPage(request, PAGE));
        return pages.send(request, reply, {
          template: 'webhooks/webhooks',
          title: 'Webhooks',
          data: {
            endpoints: page.items.map((details) => ({
              ...details,
              name: endpointName(details.endpoint),
              state: describeEndpoint(details.endpoint),
              events: details.endpoint.events.map((type) => EVENT_WORDS[type]?.[0] ?? type),
            })),
            state,
            next: pages.nextPage(request, page),
          },
          apiCall: { path: '/webhooks/endpoints', query: { ...PAGE, state } },
        });
      },
    );

    async function showForm(
      request: FastifyRequest,
      reply: FastifyReply,
      { endpoint, problem }: { endpoint?: WebhookEndpoint; problem?: AppError },
    ) {
      const events: string[] = endpoint?.events ?? ['message.received'];
      return pages.send(request, reply, {
        template: 'webhooks/endpoint-form',
        title: endpoint ? `Edit ${endpointName(endpoint)}` : 'New webhook endpoint',
        problem,
        data: {
          endpoint,
          groups: EVENT_GROUPS.map(([group, types]) => ({
            group,
            types: types.map((type) => ({
              type,
              name: EVENT_WORDS[type][0],
              meaning: EVENT_WORDS[type][1],
              checked: events.includes(type),
            })),
          })),
          inboxes: await offerInboxes(inboxes, request.scope, endpoint?.inboxIds ?? []),
        },
      });
    }

    /** The secret is shown once, so this page has no address of its own. */
    const showSecret = (
      request: FastifyRequest,
      reply: FastifyReply,
      { endpoint, secret }: CreatedEndpoint,
    ) =>
      pages.send(request, reply, {
        template: 'webhooks/secret',
        title: 'The endpoint is created',
        data: { endpoint, secret, name: endpointName(endpoint), events: endpoint.events, words: EVENT_WORDS },
      });

    app.get(
      '/webhooks/new',
      {
        config: { permission: 'webhooks:manage', impersonation: 'never' },
        schema: { operationId: 'pages.newWebhook', querystring: OrganizationQuery },
      },
      async (request, reply) => showForm(request, reply, {}),
    );

    pages.form(app, '/webhooks', {
      config: { permission: 'webhooks:manage', impersonation: 'never' },
      schema: { operationId: 'pages.createWebhook', body: EndpointForm },
      work: async ({ scope, body }) => webhookEndpoints.create(scope, readForm(body)),
      show: (request, reply, problem) => showForm(request, reply, { problem }),
      done: showSecret,
    });

    app.get(
      '/webhooks/:id/edit',
      {
        config: { permission: 'webhooks:manage', impersonation: 'never' },
        schema: { operationId: 'pages.editWebhook', params: EndpointParams, querystring: OrganizationQuery },
      },
      async (request, reply) =>
        showForm(request, reply, await webhookEndpoints.get(request.scope, request.params.id)),
    );

    pages.form(app, '/webhooks/:id/edit', {
      config: { permission: 'webhooks:manage', impersonation: 'never' },
      schema: { operationId: 'pages.changeWebhook', params: EndpointParams, body: EndpointForm },
      work: async ({ scope, params, body }) => webhookEndpoints.update(scope, params.id, readForm(body)),
      show: async (request, reply, problem) => {
        const { endpoint } = await webhookEndpoints.get(request.scope, request.params.id);
        return showForm(request, reply, { endpoint, problem });
      },
      done: (request, reply) =>
        pages.seeOther(reply, pages.link(request, `/webhooks/${request.params.id}`), 'saved'),
    });
    done();
  };

function readForm({ url, description, event = [], inbox = [] }: Static<typeof EndpointForm>) {
  const events = [event].flat() as EventType[];
  if (events.length === 0)
    throw invalid('/body/event', 'has no choice', 'Choose at least one type of event.');
  const inboxIds = [inbox].flat();
  return {
    url: url.trim(),
    events,
    description: description.trim() || null,
    inboxIds: inboxIds.length === 0 ? null : inboxIds,
  };
}

interface OfferedInbox {
  id: string;
  email: string;
  checked: boolean;
}

async function offerInboxes(
  inboxes: InboxService,
  scope: Scope,
  chosenIds: readonly string[],
): Promise<OfferedInbox[]> {
  const { items } = await inboxes.list(scope, {}, OFFERED_INBOXES);
  const offered = items.map(({ id: inboxId, email }) => ({
    id: inboxId,
    email,
    checked: chosenIds.includes(inboxId),
  }));
  const others = chosenIds.filter((each) => !items.some(({ id: inboxId }) => inboxId === each));
  return [...others.map((each) => ({ id: each, email: each, checked: true })), ...offered];
}
