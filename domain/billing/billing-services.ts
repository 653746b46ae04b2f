import type { Logger } from 'pino';
import { type Config, splitList } from '../../platform/config.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { createStripe, isLiveKey } from '../../platform/stripe/stripe-client.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { Tier } from '../organizations/tier.ts';
import type { SuspensionService } from '../suspensions/suspension.service.ts';
import { createSystemSuspensionService } from '../suspensions/system-suspension.service.ts';
import { type BillingService, createBillingService } from './billing.service.ts';
import {
  type BillingAdministrationService,
  createBillingAdministrationService,
} from './billing-administration.service.ts';
import { createCheckoutClosing } from './checkout-sessions.ts';
import { createMeterReportingService } from './meter-reporting.service.ts';
import { createMeterSettlementService } from './meter-settlement.service.ts';
import { createPaymentGraceService, type PaymentGraceService } from './payment-grace.service.ts';
import { readPrices } from './prices.ts';
import { createRedirects } from './redirects.ts';
import { createStripeEventService, type StripeEventService } from './stripe-events.service.ts';
import { createSubscriptionSyncService } from './subscription-sync.service.ts';

interface BillingDependencies {
  config: Config;
  database: Database;
  outbox: Outbox;
  logger: Logger;
}

/** The billing services of the API; undefined if billing is switched off. */
export function createBillingServices({
  workerDatabase,
  notifications,
  suspensions,
  ...dependencies
}: BillingDependencies & {
  /** Connected as a worker: an event may concern any organization. */
  workerDatabase: Database;
  notifications: NotificationService;
  suspensions: SuspensionService;
}): {
  billing: BillingService | undefined;
  stripeEvents: StripeEventService | undefined;
  billingAdministration: BillingAdministrationService | undefined;
} {
  const { config, database, outbox, logger } = dependencies;
  if (!config.BILLING_ENABLED)
    return { billing: undefined, stripeEvents: undefined, billingAdministration: undefined };
  const stripe = createStripe(config);
  return {
    billing: createBillingService({
      database,
      stripe,
      prices: readPrices(config),
      redirects: createRedirects(config),
      publicUrl: config.PUBLIC_URL.replace(/\/+$/, ''),
    }),
    stripeEvents: createStripeEventService({
      database: workerDatabase,
      stripe,
      outbox,
      webhookSecrets: splitList(config.STRIPE_WEBHOOK_SECRET),
      isLive: isLiveKey(config.STRIPE_SECRET_KEY ?? ''),
      logger,
    }),
    billingAdministration: createBillingAdministrationService({
      database,
      graces: createGraces({ config, outbox, notifications, suspensions }),
    }),
  };
}

/** The billing services of workflows. */
export function createBillingWork({
  notifications,
  suspensions,
  now,
  ...dependencies
}: BillingDependencies & {
  notifications: NotificationService;
  suspensions: SuspensionService;
  now?: () => Date;
}) {
  const { config, database, outbox, logger } = dependencies;
  const stripe = createStripe(config);
  const clock = now ? { now } : {};
  const graces = createGraces({ config, outbox, notifications, suspensions });
  const syncs = createSubscriptionSyncService({
    database,
    stripe,
    outbox,
    notifications,
    graces,
    prices: readPrices(config),
    defaultTier: config.DEFAULT_TIER,
    logger,
    ...clock,
  });
  return {
    graces,
    syncs,
    closeCheckout: createCheckoutClosing({ database, stripe }),
    meterSettlement: createMeterSettlementService({ database, logger, ...clock }),
    meterReporting: createMeterReportingService({ database, stripe, logger, ...clock }),
  };
}

function createGraces({
  config,
  outbox,
  notifications,
  suspensions,
}: {
  config: Config;
  outbox: Outbox;
  notifications: NotificationService;
  suspensions: SuspensionService;
}): PaymentGraceService {
  return createPaymentGraceService({
    outbox,
    notifications,
    suspensions: createSystemSuspensionService({ suspensions }),
    graceDays: config.PAYMENT_GRACE_DAYS,
  });
}

/** Whether owners pay for the tier themselves. Otherwise staff grant it. */
export function isPaidTier(config: Config, tier: Tier): boolean {
  return config.BILLING_ENABLED && readPrices(config).priceOf(tier) !== undefined;
}
