import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { StripeEventService } from '../../domain/billing/stripe-events.service.ts';
import { postProblems } from '../schemas.ts';
import { requireBilling } from './billing.routes.ts';
import { StripeEventReceipt } from './billing.schemas.ts';

/** Takes the events of Stripe. The signature covers the bytes of the body, so they are not parsed before. */
export const stripeEventRoutes =
  ({
    stripeEvents,
    unversioned = false,
  }: {
    /** Undefined: billing is switched off. */
    stripeEvents: StripeEventService | undefined;
    unversioned?: boolean;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.removeContentTypeParser('application/json');
    app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, parsed) =>
      parsed(null, body),
    );

    app.post(
      '/billing/webhook',
      {
        // The signature authenticates the request. Stripe posts from a few IP addresses, in bursts.
        config: { public: 'unlimited' },
        schema: {
          operationId: unversioned ? 'billingUnversioned.takeStripeEvent' : 'billing.takeStripeEvent',
          summary: unversioned
            ? 'Receive an event of Stripe (same as /api/v1)'
            : 'Receive an event of Stripe',
          description: 'For Stripe, not for agents. Each event takes effect once, in any order.',
          tags: ['Billing'],
          security: [],
          body: Type.Unsafe<unknown>({ description: 'An event, signed in the header Stripe-Signature.' }),
          response: { 200: StripeEventReceipt, ...postProblems() },
        },
      },
      async ({ body, headers }) => {
        const service = requireBilling(stripeEvents);
        const signature = headers['stripe-signature'];
        const result = await service.take(
          Buffer.isBuffer(body) ? body : Buffer.alloc(0),
          Array.isArray(signature) ? signature[0] : signature,
        );
        return { result, received_at: new Date().toISOString() };
      },
    );
    done();
  };
