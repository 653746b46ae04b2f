import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { requireBilling } from '../../api/billing/require-billing.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { BillingService } from '../../domain/billing/billing.service.ts';
import { isInGoodStanding } from '../../domain/billing/subscription-status.ts';
import { EFFECT_OF_SUSPENSION } from '../../domain/notifications/billing-templates.ts';
import { TIERS } from '../../domain/organizations/tier.ts';
import { AppError } from '../../platform/errors.ts';
import { OrganizationQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';

const FORM = { permission: 'billing:manage', allowedWhileSuspended: true } as const;
const STRIPE = 'Stripe';

/** The page on which owners pay for the organization. It leads to Stripe's pages for everything about cards and invoices. */
export const billingPages =
  ({ pages, billing }: { pages: Pages; billing: BillingService | undefined }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const pathOf = ({ scope }: FastifyRequest) => `/billing?org=${scope.organizationId}`;

    async function show(
      request: FastifyRequest,
      reply: FastifyReply,
      problem?: AppError,
    ): Promise<FastifyReply> {
      const service = requireBilling(billing);
      const { tier, customer, subscription, grace, meteredCounters } = await service.getState(request.scope);
      const open = subscription?.endedAt === null ? subscription : undefined;
      return pages.send(request, reply, {
        template: 'billing/billing',
        title: 'Plan and payment',
        problem,
        data: {
          organizationId: request.scope.organizationId,
          tier,
          hasCustomer: customer !== undefined,
          subscription: open,
          grace,
          meteredCounters,
          effectOfSuspension: EFFECT_OF_SUSPENSION,
          // A subscription that is not paid cannot be changed.
          offered:
            open && !isInGoodStanding(open)
              ? []
              : service.tiersForSale.filter((offer) => offer !== open?.tier),
        },
        apiCall: { path: '/billing/subscription' },
      });
    }

    /** Shows what Stripe refuses, and that Stripe is down, on the page itself. */
    const attempt = async (
      request: FastifyRequest,
      reply: FastifyReply,
      work: (service: BillingService) => Promise<FastifyReply>,
    ): Promise<FastifyReply> => {
      try {
        return await work(requireBilling(billing));
      } catch (error) {
        const isShown =
          error instanceof AppError &&
          ['conflict', 'unprocessable', 'unavailable', 'validation_error'].includes(error.code);
        if (!isShown) throw error;
        return show(request, reply, error);
      }
    };

    app.get(
      '/billing',
      {
        config: { permission: 'billing:manage' },
        schema: { operationId: 'pages.billing', querystring: OrganizationQuery },
      },
      async (request, reply) => show(request, reply),
    );

    app.post(
      '/billing/start',
      {
        config: FORM,
        schema: {
          operationId: 'pages.startCheckout',
          querystring: OrganizationQuery,
          body: strictObject({ tier: enumOf(TIERS) }),
        },
      },
      async (request, reply) =>
        attempt(request, reply, async (service) => {
          const { url } = await service.checkout(request.scope, { tier: request.body.tier });
          return pages.leave(request, reply, { url, name: STRIPE });
        }),
    );

    app.post(
      '/billing/manage',
      {
        config: FORM,
        schema: {
          operationId: 'pages.openPortal',
          querystring: OrganizationQuery,
          body: strictObject({}),
        },
      },
      async (request, reply) =>
        attempt(request, reply, async (service) => {
          const { url } = await service.openPortal(request.scope, undefined);
          return pages.leave(request, reply, { url, name: STRIPE });
        }),
    );

    app.post(
      '/billing/plan',
      {
        config: FORM,
        schema: {
          operationId: 'pages.changePlan',
          querystring: OrganizationQuery,
          body: strictObject({
            tier: enumOf(TIERS),
            when: enumOf(['now', 'period_end']),
            confirmed: Type.Optional(Type.Literal('yes')),
            proration_date: Type.Optional(text(12, { pattern: '^\\d*$' })),
          }),
        },
      },
      async (request, reply) =>
        attempt(request, reply, async (service) => {
          const { tier, when, confirmed, proration_date: date } = request.body;
          const change = await service.changePlan(request.scope, {
            tier,
            when,
            preview: confirmed !== 'yes',
            prorationDate: date ? Number(date) : undefined,
          });
          if (change.status === 'preview')
            return pages.send(request, reply, {
              template: 'billing/billing-preview',
              title: `Change to ${tier}`,
              data: { ...change, organizationId: request.scope.organizationId },
            });
          const notice = change.status === 'accepted' ? 'plan-changed' : 'plan-payment-required';
          return pages.seeOther(reply, pathOf(request), notice);
        }),
    );

    app.post(
      '/billing/end',
      {
        config: FORM,
        schema: {
          operationId: 'pages.cancelSubscription',
          querystring: OrganizationQuery,
          body: strictObject({ when: enumOf(['now', 'period_end', 'never']) }),
        },
      },
      async (request, reply) =>
        attempt(request, reply, async (service) => {
          const { when } = request.body;
          await service.cancel(request.scope, when);
          return pages.seeOther(
            reply,
            pathOf(request),
            when === 'never' ? 'subscription-continues' : 'subscription-canceled',
          );
        }),
    );
    done();
  };
