import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { EVENT_TYPES } from '../../domain/events/event-types.ts';
import type { BulkJobService } from '../../domain/webhooks/bulk-job.service.ts';
import { DELIVERY_STATUSES } from '../../domain/webhooks/delivery.entity.ts';
import type { DeliveryControlService } from '../../domain/webhooks/delivery-control.service.ts';
import type { WebhookEndpointService } from '../../domain/webhooks/endpoint.service.ts';
import { findOverlapEnd } from '../../domain/webhooks/endpoint-secret.ts';
import type { Config } from '../../platform/config.ts';
import { type AppError, invalid } from '../../platform/errors.ts';
import { listQuery, OptionalText, OrganizationQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { describeHold, findOldestHeld, mayRetry } from './held-deliveries.ts';
import { EndpointParams } from './webhooks.routes.ts';
import {
  describeAnswer,
  describeDelivery,
  describeEndpoint,
  describeJob,
  describeNextAttempt,
  describeProbes,
  EVENT_WORDS,
  endpointName,
  STATUS_WORDS,
} from './words.ts';

export interface EndpointPageDependencies {
  pages: Pages;
  webhookEndpoints: WebhookEndpointService;
  webhookDeliveries: DeliveryControlService;
  webhookJobs: BulkJobService;
  config: Config;
}

const EndpointQuery = listQuery({
  status: Type.Optional(enumOf(['', ...DELIVERY_STATUSES])),
  event_type: Type.Optional(enumOf(['', ...EVENT_TYPES])),
  /** A replay or cancellation, whose progress the page shows. */
  job: OptionalText(64),
});
type Filters = Static<typeof EndpointQuery>;

const PAGE = { limit: 25 };
/** Outcomes of deliveries are no events: the page asks for them. */
const REFRESH_MS = 3_000;
const DAY_MS = 86_400_000;
const OVERLAPS = [
  ['86400', 'for a day'],
  ['3600', 'for an hour'],
  ['604800', 'for a week'],
  ['0', 'not at all'],
] as const;

const ReplayForm = strictObject({
  since: text(30),
  until: text(30),
  only_failed: Type.Optional(Type.Literal('on')),
});

/** One endpoint: its health, its deliveries, and what is done with it. */
export const endpointPages =
  ({
    pages,
    webhookEndpoints,
    webhookDeliveries,
    webhookJobs,
    config,
  }: EndpointPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const home = (request: FastifyRequest) =>
      pages.link(request, `/webhooks/${(request.params as { id: string }).id}`);
    const change = { permission: 'webhooks:manage' } as const;

    async function describe(request: FastifyRequest, filters: Filters) {
      const { scope } = request;
      const { id: endpointId } = request.params as { id: string };
      const { status, event_type: eventType, job } = filters;
      const filter = { status: status || undefined, eventType: eventType || undefined };
      const [details, page, oldest, shownJob] = await Promise.all([
        webhookEndpoints.get(scope, endpointId),
        webhookDeliveries.list(scope, endpointId, filter, pages.readPage(request, PAGE)),
        findOldestHeld(webhookDeliveries, scope, endpointId),
        job ? webhookJobs.get(scope, job) : undefined,
      ]);
      const { endpoint } = details;
      const probes = describeProbes(endpoint);
      return {
        ...details,
        filters,
        statusChoices: [['', 'Every status'], ...Object.entries(STATUS_WORDS)],
        eventChoices: [['', 'Every event'], ...EVENT_TYPES.map((type) => [type, EVENT_WORDS[type][0]])],
        state: describeEndpoint(endpoint),
        ...describeHold(endpoint, oldest, config.WEBHOOK_TIMEOUT_MS),
        overlapEnd: findOverlapEnd(endpoint),
        deliveries: page.items.map(({ delivery, event }) => ({
          ...delivery,
          test: event.test,
          event: EVENT_WORDS[event.type]?.[0] ?? event.type,
          state: describeDelivery(delivery, config.WEBHOOK_TIMEOUT_MS),
          answer: describeAnswer(delivery, config.WEBHOOK_TIMEOUT_MS),
          next:
            delivery.status === 'held' &&
            describeNextAttempt(delivery, delivery.id === oldest?.delivery.id ? probes : undefined),
          mayRetry: mayRetry(endpoint, { delivery, event }),
        })),
        isFiltered: Boolean(status || eventType),
        next: pages.nextPage(request, page),
        job: shownJob && describeJob(shownJob),
      };
    }

    async function show(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const filters = (request.method === 'GET' ? request.query : {}) as Filters;
      const shown = await describe(request, filters);
      const { endpoint } = shown;
      const live = new URLSearchParams();
      for (const name of ['status', 'event_type', 'job', 'cursor'] as const)
        if (filters[name]) live.set(name, filters[name]);
      return pages.send(request, reply, {
        template: 'webhooks/endpoint',
        title: endpointName(endpoint),
        problem,
        data: {
          ...shown,
          livePath: pages.link(request, `/webhooks/${endpoint.id}/live?${live}`),
          events: endpoint.events.map((type) => EVENT_WORDS[type]?.[0] ?? type),
          testChoices: EVENT_TYPES.map((type) => [type, EVENT_WORDS[type][0]] as const),
          overlaps: OVERLAPS,
        },
        apiCall: {
          path: `/webhooks/endpoints/${endpoint.id}/deliveries`,
          query: { ...PAGE, status: filters.status, event_type: filters.event_type },
        },
      });
    }

    app.get(
      '/webhooks/:id',
      {
        config: { permission: 'webhooks:read' },
        schema: { operationId: 'pages.webhook', params: EndpointParams, querystring: EndpointQuery },
      },
      async (request, reply) => show(request, reply),
    );

    app.get(
      '/webhooks/:id/live',
      {
        config: { permission: 'webhooks:read', heldOpen: true },
        exposeHeadRoute: false,
        schema: { operationId: 'pages.webhookLive', params: EndpointParams, querystring: EndpointQuery },
      },
      async (request, reply) => {
        await webhookEndpoints.get(request.scope, request.params.id);
        return pages.live(request, reply, {
          intervalMs: REFRESH_MS,
          render: async () =>
            pages.part(request, 'webhooks/endpoint-live', await describe(request, request.query)),
        });
      },
    );

    pages.form(app, '/webhooks/:id/test', {
      config: change,
      schema: {
        operationId: 'pages.testWebhook',
        params: EndpointParams,
        body: strictObject({ event_type: enumOf(EVENT_TYPES) }),
      },
      work: ({ scope, params, body }) => webhookDeliveries.sendTest(scope, params.id, body.event_type),
      show,
      done: (request, reply, { delivery }) =>
        pages.seeOther(reply, pages.link(request, `/webhooks/deliveries/${delivery.id}`), 'test-sent'),
    });

    for (const [action, disabled, notice] of [
      ['pause', true, 'webhook-paused'],
      ['enable', false, 'webhook-enabled'],
    ] as const)
      pages.form(app, `/webhooks/:id/${action}`, {
        config: { ...change, impersonation: 'never' },
        schema: { operationId: `pages.${action}Webhook`, params: EndpointParams, body: strictObject({}) },
        work: ({ scope, params }) => webhookEndpoints.update(scope, params.id, { disabled }),
        show,
        done: (request, reply) => pages.seeOther(reply, home(request), notice),
      });

    pages.form(app, '/webhooks/:id/rotate-secret', {
      config: { ...change, impersonation: 'never' },
      schema: {
        operationId: 'pages.rotateWebhookSecret',
        params: EndpointParams,
        body: strictObject({ overlap: enumOf(OVERLAPS.map(([seconds]) => seconds)) }),
      },
      work: ({ scope, params, body }) =>
        webhookEndpoints.rotateSecret(scope, params.id, Number(body.overlap)),
      show,
      done: (request, reply, { endpoint, secret }) =>
        pages.send(request, reply, {
          template: 'webhooks/secret',
          title: 'The secret is rotated',
          data: {
            endpoint,
            secret,
            name: endpointName(endpoint),
            overlapEnd: findOverlapEnd(endpoint),
            isRotated: true,
          },
        }),
    });

    pages.form(app, '/webhooks/:id/cancel-pending', {
      config: change,
      schema: {
        operationId: 'pages.cancelPendingDeliveries',
        params: EndpointParams,
        body: strictObject({}),
      },
      work: ({ scope, params }) => webhookJobs.cancelPending(scope, params.id),
      show,
      done: (request, reply, job) =>
        pages.seeOther(reply, pages.link(request, `/webhooks/${request.params.id}`, { job: job.id })),
    });

    pages.form(app, '/webhooks/:id/delete', {
      config: change,
      schema: { operationId: 'pages.deleteWebhook', params: EndpointParams, body: strictObject({}) },
      work: ({ scope, params }) => webhookEndpoints.delete(scope, params.id),
      show,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, '/webhooks'), 'webhook-deleted'),
    });

    async function showReplay(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const { id: endpointId } = request.params as { id: string };
      const [details, oldest] = await Promise.all([
        webhookEndpoints.get(request.scope, endpointId),
        findOldestHeld(webhookDeliveries, request.scope, endpointId),
      ]);
      const { endpoint } = details;
      const now = Date.now();
      return pages.send(request, reply, {
        template: 'webhooks/replay',
        title: `Replay to ${endpointName(endpoint)}`,
        problem,
        data: {
          ...details,
          ...describeHold(endpoint, oldest, config.WEBHOOK_TIMEOUT_MS),
          since: toField(now - DAY_MS),
          until: toField(now + 60_000),
        },
        apiCall: {
          method: 'POST',
          path: `/webhooks/endpoints/${endpointId}/replay`,
          body: { since: new Date(now - DAY_MS).toISOString(), only_failed: true },
        },
      });
    }

    app.get(
      '/webhooks/:id/replay',
      {
        config: { ...change, impersonation: 'never' },
        schema: {
          operationId: 'pages.webhookReplay',
          params: EndpointParams,
          querystring: OrganizationQuery,
        },
      },
      async (request, reply) => showReplay(request, reply),
    );

    pages.form(app, '/webhooks/:id/replay', {
      config: change,
      schema: { operationId: 'pages.replayWebhook', params: EndpointParams, body: ReplayForm },
      work: async ({ scope, params, body }) =>
        webhookJobs.replay(scope, params.id, {
          since: readField('since', body.since),
          until: readField('until', body.until),
          onlyFailed: body.only_failed === 'on',
        }),
      show: showReplay,
      done: (request, reply, job) =>
        pages.seeOther(reply, pages.link(request, `/webhooks/${request.params.id}`, { job: job.id })),
    });
    done();
  };

/** The value of a field of type `datetime-local`, in UTC. */
const toField = (time: number): string => new Date(time).toISOString().slice(0, 16);

function readField(name: string, value: string): Date {
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?$/.test(value)
    ? new Date(`${value}Z`)
    : new Date(Number.NaN);
  if (Number.isNaN(time.getTime()))
    throw invalid(`/body/${name}`, 'is not a date with a time', 'Enter a date with a time, in UTC.');
  return time;
}
