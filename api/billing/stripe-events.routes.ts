import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { StripeEventService } from '../../domain/billing/stripe-events.service.ts';
import { postProblems } from '../schemas.ts';
import { StripeEventAcknowledgment } from './billing.schemas.ts';
import { requireBilling } from './require-billing.ts';

/** Events hold one object with the first ten of its parts: some tens of KiB, with all the metadata that Stripe allows. */
const MAX_EVENT_BYTES = 262_144;

const readSignature = ({ 'stripe-signature': signature }: FastifyRequest['headers']): string | undefined =>
  Array.isArray(signature) ? signature[0] : signature;

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
        bodyLimit: MAX_EVENT_BYTES,
        config: { public: 'signed' },
        // Before the body is read.
        onRequest: async ({ headers }) => {
          requireBilling(stripeEvents).requirePlausible(readSignature(headers));
        },
        schema: {
          operationId: unversioned ? 'billingUnversioned.takeStripeEvent' : 'billing.takeStripeEvent',
          summary: unversioned
            ? 'Receive an event of Stripe (same as /api/v1)'
            : 'Receive an event of Stripe',
          description: 'For Stripe, not for agents. Each event takes effect once, in any order.',
          tags: ['Billing'],
          security: [],
          body: Type.Unsafe<unknown>({ description: 'An event, signed in the header Stripe-Signature.' }),
          response: { 200: StripeEventAcknowledgment, ...postProblems() },
        },
      },
      async ({ body, headers }) => {
        const service = requireBilling(stripeEvents);
        const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
        const result = await service.take(bytes, readSignature(headers));
        return { object: 'acknowledgement' as const, result, received_at: new Date().toISOString() };
      },
    );
    done();
  };
