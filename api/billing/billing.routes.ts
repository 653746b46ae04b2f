import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import type { BillingService } from '../../domain/billing/billing.service.ts';
import { postProblems, problems, ref } from '../schemas.ts';
import {
  CancellationRecord,
  CancelSubscription,
  ChangePlan,
  CheckoutSession,
  OpenPortal,
  PlanChangeRecord,
  PortalSession,
  presentPlanChange,
  presentSubscription,
  StartCheckout,
  SubscriptionRecord,
} from './billing.schemas.ts';
import { requireBilling } from './require-billing.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What Stripe answered, before the transaction of an Idempotency-Key begins. */
    billingAnswer: unknown;
  }
}

export const billingRoutes =
  ({
    billing,
    unversioned = false,
  }: {
    /** Undefined: billing is switched off. */
    billing: BillingService | undefined;
    /** Registers the same operations without the /api/v1 prefix. */
    unversioned?: boolean;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.decorateRequest('billingAnswer', undefined);
    const requireFeature = () => void requireBilling(billing);
    const operation = (name: string, summary: string) => ({
      operationId: `${unversioned ? 'billingUnversioned' : 'billing'}.${name}`,
      summary: unversioned ? `${summary} (same as /api/v1)` : summary,
      tags: ['Billing'],
    });
    /** No request to Stripe is made in the transaction of an Idempotency-Key. */
    const change = (work: (service: BillingService, request: FastifyRequest) => Promise<unknown>) => ({
      permission: 'billing:manage' as const,
      requireFeature,
      readPermission: 'billing:manage' as const,
      exemptFromUsageLimit: true as const,
      allowedWhileSuspended: true as const,
      prepare: async (request: FastifyRequest) => {
        request.billingAnswer = await work(requireBilling(billing), request);
      },
    });
    const bodyOf = <Schema>(request: FastifyRequest) => request.body as Schema;

    app.post(
      '/billing/checkout',
      {
        config: change(async (service, request): Promise<Static<typeof CheckoutSession>> => {
          const {
            tier,
            success_url: successUrl,
            cancel_url: cancelUrl,
          } = bodyOf<Static<typeof StartCheckout>>(request);
          const session = await service.checkout(request.scope, { tier, successUrl, cancelUrl });
          return { object: 'checkout_session', ...session };
        }),
        schema: {
          ...operation('checkout', 'Start a checkout for a new subscription'),
          description:
            'An open checkout for the same tier is used again. 409 with `portal_url` while a subscription has not ended. The tier changes with Stripe’s event, not with the return to `success_url`.',
          body: ref(StartCheckout),
          response: { 200: ref(CheckoutSession), ...postProblems() },
        },
      },
      async ({ billingAnswer }) => billingAnswer as Static<typeof CheckoutSession>,
    );

    app.post(
      '/billing/portal',
      {
        config: {
          ...change(async (service, request): Promise<Static<typeof PortalSession>> => {
            const { return_url: returnUrl } = bodyOf<Static<typeof OpenPortal>>(request);
            return { object: 'portal_session', ...(await service.openPortal(request.scope, returnUrl)) };
          }),
          bodyMayBeEmpty: true,
        },
        schema: {
          ...operation('portal', 'Get a link to the portal for payment methods and invoices'),
          body: ref(OpenPortal),
          response: { 200: ref(PortalSession), ...postProblems() },
        },
      },
      async ({ billingAnswer }) => billingAnswer as Static<typeof PortalSession>,
    );

    app.get(
      '/billing/subscription',
      {
        config: { permission: 'billing:manage', requireFeature, exemptFromUsageLimit: true },
        schema: {
          ...operation('getSubscription', 'Get the subscription and the plan'),
          description: 'As Stripe’s events left it. Works while Stripe is down.',
          response: { 200: ref(SubscriptionRecord), ...problems() },
        },
      },
      async ({ scope }) => {
        const service = requireBilling(billing);
        return presentSubscription(await service.getState(scope), service.tiersForSale);
      },
    );

    app.post(
      '/billing/subscription/change-plan',
      {
        config: change(async (service, request) => {
          const { proration_date: prorationDate, ...body } = bodyOf<Static<typeof ChangePlan>>(request);
          return presentPlanChange(await service.changePlan(request.scope, { ...body, prorationDate }));
        }),
        schema: {
          ...operation('changePlan', 'Change the plan, or preview what that costs'),
          description:
            'An upgrade is prorated and paid at once, and takes effect only if the payment succeeds. A downgrade is credited, or waits for the end of the period. Use above the new limits is allowed and warned of.',
          body: ref(ChangePlan),
          response: { 200: ref(PlanChangeRecord), ...postProblems() },
        },
      },
      async ({ billingAnswer }) => billingAnswer as Static<typeof PlanChangeRecord>,
    );

    app.post(
      '/billing/subscription/cancel',
      {
        config: {
          ...change(async (service, request): Promise<Static<typeof CancellationRecord>> => {
            const { when = 'period_end' } = bodyOf<Static<typeof CancelSubscription>>(request);
            const { cancelAt, isEnded } = await service.cancel(request.scope, when);
            return {
              object: 'cancellation',
              status: isEnded ? 'canceled' : cancelAt ? 'ends' : 'continues',
              cancel_at: cancelAt?.toISOString() ?? null,
            };
          }),
          bodyMayBeEmpty: true,
        },
        schema: {
          ...operation('cancel', 'Cancel the subscription, or take that back'),
          description:
            'The organization then has the default tier. Nothing is refunded, and nothing is deleted.',
          body: ref(CancelSubscription),
          response: { 200: ref(CancellationRecord), ...postProblems() },
        },
      },
      async ({ billingAnswer }) => billingAnswer as Static<typeof CancellationRecord>,
    );
    done();
  };
