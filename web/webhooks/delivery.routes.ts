import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { id, strictObject } from '../../api/schemas.ts';
import { buildEnvelope } from '../../domain/events/envelope.ts';
import type { EventReaderService } from '../../domain/events/event-reader.service.ts';
import type { DeliveryControlService } from '../../domain/webhooks/delivery-control.service.ts';
import type { WebhookEndpointService } from '../../domain/webhooks/endpoint.service.ts';
import type { Config } from '../../platform/config.ts';
import { AppError } from '../../platform/errors.ts';
import { OrganizationQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { describeDelivery, describeError, describeOutcome, EVENT_WORDS, endpointName } from './words.ts';

export interface DeliveryPageDependencies {
  pages: Pages;
  webhookEndpoints: WebhookEndpointService;
  webhookDeliveries: DeliveryControlService;
  eventReader: EventReaderService;
  config: Config;
}

const DeliveryParams = strictObject({ id: id('Delivery id (whd_…).') });
/** Outcomes of deliveries are no events: the page asks for them. */
const REFRESH_MS = 2_000;
/** Attempts shown on the page. The API returns all. */
const SHOWN_ATTEMPTS = 50;
/** Of the body of a request that is shown on the page. */
const SHOWN_BODY_LENGTH = 20_000;

/** One delivery: what was sent, what the receiver answered in each attempt. */
export const deliveryPages =
  ({
    pages,
    webhookEndpoints,
    webhookDeliveries,
    eventReader,
    config,
  }: DeliveryPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const home = (request: FastifyRequest) =>
      pages.link(request, `/webhooks/deliveries/${(request.params as { id: string }).id}`);

    async function describe(request: FastifyRequest) {
      const { id: deliveryId } = request.params as { id: string };
      const {
        delivery,
        event,
        attempts,
        request: sent,
      } = await webhookDeliveries.get(request.scope, deliveryId);
      return {
        delivery,
        event,
        sent,
        state: describeDelivery(delivery, config.WEBHOOK_TIMEOUT_MS),
        outcome: describeOutcome(delivery.status),
        attempts: attempts
          .toReversed()
          .slice(0, SHOWN_ATTEMPTS)
          .map((attempt) => ({
            ...attempt,
            headers: Object.entries(attempt.responseHeaders ?? {}),
            why: describeError(attempt.error, config.WEBHOOK_TIMEOUT_MS),
          })),
        hiddenAttempts: Math.max(0, attempts.length - SHOWN_ATTEMPTS),
        isOpen: delivery.status === 'pending' || delivery.status === 'held',
      };
    }

    async function show(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const { scope } = request;
      const shown = await describe(request);
      const { delivery, event } = shown;
      const [endpoint, body] = await Promise.all([
        webhookEndpoints.get(scope, delivery.endpointId).catch(absent),
        scope.permissions.has('events:read')
          ? eventReader.get(scope, event.id).then(printBody).catch(absent)
          : undefined,
      ]);
      return pages.send(request, reply, {
        template: 'webhooks/delivery',
        title: `Delivery of the ${event.test ? 'test event' : 'event'} “${EVENT_WORDS[event.type]?.[0] ?? event.type}”`,
        problem,
        data: {
          ...shown,
          endpoint: endpoint?.endpoint,
          endpointName: endpoint && endpointName(endpoint.endpoint),
          body: body?.slice(0, SHOWN_BODY_LENGTH),
          isCut: (body?.length ?? 0) > SHOWN_BODY_LENGTH,
        },
        apiCall: { path: `/webhooks/deliveries/${delivery.id}` },
      });
    }

    app.get(
      '/webhooks/deliveries/:id',
      {
        config: { permission: 'webhooks:read' },
        schema: {
          operationId: 'pages.webhookDelivery',
          params: DeliveryParams,
          querystring: OrganizationQuery,
        },
      },
      async (request, reply) => show(request, reply),
    );

    app.get(
      '/webhooks/deliveries/:id/live',
      {
        config: { permission: 'webhooks:read', heldOpen: true },
        exposeHeadRoute: false,
        schema: {
          operationId: 'pages.webhookDeliveryLive',
          params: DeliveryParams,
          querystring: OrganizationQuery,
        },
      },
      async (request, reply) => {
        await webhookDeliveries.get(request.scope, request.params.id);
        return pages.live(request, reply, {
          intervalMs: REFRESH_MS,
          render: async () => pages.part(request, 'webhooks/delivery-live', await describe(request)),
        });
      },
    );

    for (const [action, notice] of [
      ['retry', 'delivery-retried'],
      ['cancel', 'delivery-canceled'],
    ] as const)
      pages.form(app, `/webhooks/deliveries/:id/${action}`, {
        config: { permission: 'webhooks:manage' },
        schema: {
          operationId: `pages.${action}WebhookDelivery`,
          params: DeliveryParams,
          body: strictObject({}),
        },
        work: ({ scope, params }) => webhookDeliveries[action](scope, params.id),
        show,
        done: (request, reply) => pages.seeOther(reply, home(request), notice),
      });
    done();
  };

/** The endpoint was deleted, or the credential does not see the event. */
function absent(error: unknown): undefined {
  if (error instanceof AppError && error.code === 'not_found') return undefined;
  throw error;
}

const printBody = (event: Parameters<typeof buildEnvelope>[0]): string =>
  JSON.stringify(buildEnvelope(event), null, 2);
