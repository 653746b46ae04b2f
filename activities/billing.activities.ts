import { Context } from '@temporalio/activity';
import type { CheckoutClosing } from '../domain/billing/checkout-sessions.ts';
import type { MeterReportingService, ReportCounts } from '../domain/billing/meter-reporting.service.ts';
import type { MeterSettlementService } from '../domain/billing/meter-settlement.service.ts';
import type { PaymentGraceService } from '../domain/billing/payment-grace.service.ts';
import type { SubscriptionSyncService } from '../domain/billing/subscription-sync.service.ts';
import type { Database } from '../platform/database/database.ts';
import type { PaymentGraceStep } from '../workflows/billing/enforce-payment-grace.contract.ts';
import { withApplicationFailures } from './failures.ts';
import { heartbeatBetweenSteps } from './heartbeats.ts';

export type BillingActivities = ReturnType<typeof createBillingActivities>;

export function createBillingActivities({
  database,
  syncs,
  graces,
  closeCheckout,
  meterSettlement,
  meterReporting,
  requestStaleReadBacks,
}: {
  database: Database;
  syncs: SubscriptionSyncService;
  graces: PaymentGraceService;
  closeCheckout(deletionId: string): Promise<CheckoutClosing>;
  meterSettlement: MeterSettlementService;
  meterReporting: MeterReportingService;
  requestStaleReadBacks(onProgress: () => void): Promise<number>;
}) {
  return {
    /** @returns the subscription's status, for the Temporal UI. */
    syncSubscription: ({ subscriptionId }: { subscriptionId: string }): Promise<string> =>
      withApplicationFailures(() => syncs.sync(subscriptionId)),

    /** Reads the invoice back, and does what is due. @returns the result of a closed grace, or what comes next. */
    reviewGrace: ({ graceId }: { graceId: string }): Promise<PaymentGraceStep | string> =>
      withApplicationFailures(() => syncs.reviewGrace(graceId)),

    extendGrace: ({ graceId, days }: { graceId: string; days: number }): Promise<void> =>
      withApplicationFailures(async () => {
        await database.systemTransaction((transaction) =>
          graces.extendBySignal(transaction, { graceId, days, now: new Date() }),
        );
      }),

    /** Of an organization that was closed. */
    expireCheckout: ({ deletionId }: { deletionId: string }): Promise<CheckoutClosing> =>
      withApplicationFailures(() => closeCheckout(deletionId)),

    requestReadBacks: (): Promise<number> =>
      withApplicationFailures(() => requestStaleReadBacks(() => Context.current().heartbeat())),

    /** Writes down the use beyond soft limits of the hours that are over. @returns how many of them are billed. */
    settleMeteredHours: (): Promise<number> =>
      withApplicationFailures(() => meterSettlement.settle(heartbeatBetweenSteps)),

    /** Sends them to Stripe, once. */
    reportMeteredHours: (): Promise<ReportCounts> =>
      withApplicationFailures(() => meterReporting.report(heartbeatBetweenSteps)),
  };
}
