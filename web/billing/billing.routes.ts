import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { requireBilling } from '../../api/billing/require-billing.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { BillingService } from '../../domain/billing/billing.service.ts';
import { isInGoodStanding } from '../../domain/billing/subscription-status.ts';
import { EFFECT_OF_SUSPENSION } from '../../domain/notifications/billing-templates.ts';
import { TIERS } from '../../domain/organizations/tier.ts';
import type { AppError } from '../../platform/errors.ts';
import { OrganizationQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';

const FORM = { permission: 'billing:manage', allowedWhileSuspended: true } as const;

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

    app.get(
      '/billing',
      {
        config: { permission: 'billing:manage' },
        schema: { operationId: 'pages.billing', querystring: OrganizationQuery },
      },
      async (request, reply) => show(request, reply),
    );

    const leave = (request: FastifyRequest, reply: FastifyReply, { url }: { url: string }) =>
      pages.leave(request, reply, { url, name: 'Stripe' });

    pages.form(app, '/billing/start', {
      config: FORM,
      schema: { operationId: 'pages.startCheckout', body: strictObject({ tier: enumOf(TIERS) }) },
      work: ({ scope, body }) => requireBilling(billing).checkout(scope, { tier: body.tier }),
      show,
      done: leave,
    });

    pages.form(app, '/billing/manage', {
      config: FORM,
      schema: { operationId: 'pages.openPortal', body: strictObject({}) },
      work: ({ scope }) => requireBilling(billing).openPortal(scope, undefined),
      show,
      done: leave,
    });

    pages.form(app, '/billing/plan', {
      config: FORM,
      schema: {
        operationId: 'pages.changePlan',
        body: strictObject({
          tier: enumOf(TIERS),
          when: enumOf(['now', 'period_end']),
          confirmed: Type.Optional(Type.Literal('yes')),
          proration_date: Type.Optional(text(12, { pattern: '^\\d*$' })),
        }),
      },
      work: ({ scope, body: { tier, when, confirmed, proration_date: date } }) =>
        requireBilling(billing).changePlan(scope, {
          tier,
          when,
          preview: confirmed !== 'yes',
          prorationDate: date ? Number(date) : undefined,
        }),
      show,
      done(request, reply, change) {
        if (change.status === 'preview')
          return pages.send(request, reply, {
            template: 'billing/billing-preview',
            title: `Change to ${request.body.tier}`,
            data: { ...change, organizationId: request.scope.organizationId },
          });
        const notice = change.status === 'accepted' ? 'plan-changed' : 'plan-payment-required';
        return pages.seeOther(reply, pathOf(request), notice);
      },
    });

    pages.form(app, '/billing/end', {
      config: FORM,
      schema: {
        operationId: 'pages.cancelSubscription',
        body: strictObject({ when: enumOf(['now', 'period_end', 'never']) }),
      },
      work: ({ scope, body }) => requireBilling(billing).cancel(scope, body.when),
      show,
      done: (request, reply) =>
        pages.seeOther(
          reply,
          pathOf(request),
          request.body.when === 'never' ? 'subscription-continues' : 'subscription-canceled',
        ),
    });
    done();
  };
