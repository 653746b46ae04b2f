import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { BillingService } from '../../domain/billing/billing.service.ts';
import type { BillingAdministrationService } from '../../domain/billing/billing-administration.service.ts';
import { MAX_EXTENSION_DAYS } from '../../workflows/billing/enforce-payment-grace.contract.ts';
import { presentSubscription, SubscriptionRecord } from '../billing/billing.schemas.ts';
import { refuseWithoutBilling, requireBilling } from '../billing/require-billing.ts';
import { id, postProblems, problems, ref, resource, strictObject, timestamp } from '../schemas.ts';
import { Note } from './note.ts';

const OneOrganization = strictObject({ id: id('Organization id (org_…).') });

export const ExtendGrace = strictObject(
  { days: Type.Integer({ minimum: 1, maximum: MAX_EXTENSION_DAYS }), note: Note },
  { $id: 'ExtendGrace', title: 'ExtendGrace' },
);
export const GraceExtension = resource(
  'grace_extension',
  { suspend_at: timestamp('When the organization is suspended unless it pays.') },
  { $id: 'GraceExtension', title: 'GraceExtension' },
);

export const adminBillingRoutes =
  ({
    billing,
    billingAdministration,
  }: {
    billing: BillingService | undefined;
    billingAdministration: BillingAdministrationService | undefined;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    refuseWithoutBilling(app, billing);
    app.get(
      '/orgs/:id/billing',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminOrganizations.getBilling',
          summary: 'Get the subscription of an organization',
          tags: ['Admin'],
          params: OneOrganization,
          response: { 200: ref(SubscriptionRecord), ...problems() },
        },
      },
      async ({ staff, params }) =>
        presentSubscription(
          await requireBilling(billingAdministration).get(staff, params.id),
          requireBilling(billing).tiersForSale,
        ),
    );

    app.post(
      '/orgs/:id/extend-grace',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminOrganizations.extendGrace',
          summary: 'Give an organization more time to pay',
          description:
            'Counts from the day of suspension; after it from now, and ends the suspension for the payment.',
          tags: ['Admin'],
          params: OneOrganization,
          body: ref(ExtendGrace),
          response: { 200: ref(GraceExtension), ...postProblems() },
        },
      },
      async ({ staff, params, body }) => {
        const suspendAt = await requireBilling(billingAdministration).extendGrace(staff, params.id, body);
        return { object: 'grace_extension' as const, suspend_at: suspendAt.toISOString() };
      },
    );
    done();
  };
