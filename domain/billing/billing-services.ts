import type { Logger } from 'pino';
import type { Config } from '../../platform/config.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { createStripe, isLiveKey } from '../../platform/stripe.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { SuspensionService } from '../suspensions/suspension.service.ts';
import { createSystemSuspensionService } from '../suspensions/system-suspension.service.ts';
import { type BillingService, createBillingService } from './billing.service.ts';
import { createPaymentGraceService } from './payment-grace.service.ts';
import { readPrices, splitList } from './prices.ts';
import { createRedirects } from './redirects.ts';
import { createStripeEventService, type StripeEventService } from './stripe-events.service.ts';
import { createSubscriptionSyncService } from './subscription-sync.service.ts';

interface BillingDependencies {
  config: Config;
  database: Database;
  outbox: Outbox;
  logger: Logger;
}

/** What the API does about billing; undefined members if it is switched off. */
export function createBillingServices({
  workerDatabase,
  ...dependencies
}: BillingDependencies & {
  /** Connected as a worker: an event may concern any organization. */
  workerDatabase: Database;
}): { billing: BillingService | undefined; stripeEvents: StripeEventService | undefined } {
  const { config, database, outbox, logger } = dependencies;
  if (!config.BILLING_ENABLED) return { billing: undefined, stripeEvents: undefined };
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
  };
}

/** What workflows do about billing. */
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
  const graces = createPaymentGraceService({
    outbox,
    notifications,
    suspensions: createSystemSuspensionService({ suspensions }),
    graceDays: config.PAYMENT_GRACE_DAYS,
  });
  const syncs = createSubscriptionSyncService({
    database,
    stripe: createStripe(config),
    outbox,
    notifications,
    graces,
    prices: readPrices(config),
    defaultTier: config.DEFAULT_TIER,
    logger,
    ...(now ? { now } : {}),
  });
  return { graces, syncs };
}
