import type { Logger } from 'pino';
import {
  bounceDomain,
  type Config,
  feedbackAddress,
  inboundMxHost,
  spfMechanism,
} from '../platform/config.ts';
import { createSecretBox } from '../platform/crypto.ts';
import type { Database } from '../platform/database/database.ts';
import { createDnsLookup, createResolver } from '../platform/dns.ts';
import { simulatorDomainOf } from '../platform/mail-transport/simulator-transport.ts';
import { once } from '../platform/once.ts';
import type { Outbox } from '../platform/outbox/outbox.ts';
import { createRateLimiter, leaseFromDatabase } from '../platform/rate-limit/rate-limiter.ts';
import { createReturnPaths } from '../platform/return-path.ts';
import type { ServiceMetrics } from '../platform/service-metrics.ts';
import type { Storage } from '../platform/storage.ts';
import { createAttachmentService } from './attachments/attachment.service.ts';
import { createUnsubscribeLinks } from './deliverability/unsubscribe-links.ts';
import { createDraftCreation } from './drafts/create-draft.ts';
import { createDraftService } from './drafts/draft.service.ts';
import { type Authenticate, createAuthenticator, skipAuthentication } from './inbound/mail-authentication.ts';
import { createReceiptService } from './inbound/receipt.service.ts';
import { createCredentialService } from './inboxes/credential.service.ts';
import { createNotificationService } from './notifications/notification.service.ts';
import { createNotifySuspension } from './notifications/notify-suspension.ts';
import { createPersonNotificationService } from './notifications/person-notification.service.ts';
import { createOutcomeService } from './outbound/outcome.service.ts';
import { createSuspensionService } from './suspensions/suspension.service.ts';
import { createWebhookEvents } from './webhooks/webhook-events.ts';

export interface SharedServicesOptions {
  config: Config;
  database: Database;
  /** Connected as a worker, which sees every tenant, because inbound mail may belong to any of them. */
  workerDatabase: Database;
  outbox: Outbox;
  storage: Storage;
  logger: Logger;
  metrics?: Pick<ServiceMetrics, 'events'> | undefined;
}

export type SharedServices = ReturnType<typeof createSharedServices>;

/**
 * Builds the services that both the API and the workers use, from the same settings. A getter builds its service on first
 * use.
 */
export function createSharedServices({
  config,
  database,
  workerDatabase,
  outbox,
  storage,
  logger,
  metrics,
}: SharedServicesOptions) {
  const events = createWebhookEvents({ outbox, onRecorded: (type) => metrics?.events.inc({ type }) });
  const returnPaths = createReturnPaths({ signingKey: config.SIGNING_KEY, domain: bounceDomain(config) });
  // A self-hosted service vouches for its own organizations.
  const sharedDomainLimit = config.BILLING_ENABLED
    ? { startingCap: config.SHARED_DOMAIN_DAILY_CAP }
    : undefined;
  const unsubscribeLinks = createUnsubscribeLinks({
    signingKey: config.SIGNING_KEY,
    publicUrl: config.PUBLIC_URL,
  });
  const approvalMs = config.APPROVAL_DAYS * 86_400_000;
  const notifications = createNotificationService({ outbox });
  const sending = {
    database,
    outbox,
    events,
    notifications,
    unsubscribeLinks,
    sharedDomainLimit,
    approvalMs,
  };
  const drafts = once(() => createDraftService(sending));
  const attachments = once(() => createAttachmentService({ database, storage }));
  const credentials = once(() => createCredentialService({ database }));
  const authenticateMail = once(() => createConfiguredAuthenticator(config));
  const receipts = once(() =>
    createReceiptService({
      database: workerDatabase,
      outbox,
      returnPaths,
      storage,
      feedbackAddress: feedbackAddress(config),
      authenticate: authenticateMail(),
      rateLimiter: createRateLimiter({ lease: leaseFromDatabase(workerDatabase), logger }),
      catchAllPerHour: config.CATCH_ALL_MESSAGES_PER_HOUR,
    }),
  );
  const outcomes = once(() =>
    createOutcomeService({
      events,
      outbox,
      retryWindowMs: config.MAIL_RETRY_WINDOW_HOURS * 3_600_000,
      simulatorDomain: simulatorDomainOf(config.MAIL_DOMAIN),
    }),
  );
  const secretBox = createSecretBox(config.ENCRYPTION_KEY);
  return {
    events,
    returnPaths,
    unsubscribeLinks,
    sharedDomainLimit,
    /** What the services that send need. */
    sending,
    draftCreation: createDraftCreation(sending),
    secretBox,
    notifications,
    suspensions: createSuspensionService({ outbox, onChange: createNotifySuspension(notifications) }),
    personNotifications: createPersonNotificationService({ outbox, secretBox }),
    dns: createDnsLookup(config),
    /** Values of the DNS records that a custom domain must publish. */
    dnsSettings: { spfMechanism: spfMechanism(config), mxHost: inboundMxHost(config) },
    /** Checks received mail as the settings say. */
    get authenticateMail() {
      return authenticateMail();
    },
    get drafts() {
      return drafts();
    },
    get attachments() {
      return attachments();
    },
    get credentials() {
      return credentials();
    },
    get receipts() {
      return receipts();
    },
    get outcomes() {
      return outcomes();
    },
  };
}

/** Parsing, authenticating and storing a small message must fit into the local activity's timeout of 5 s. */
const AUTHENTICATION_TIMEOUT_MS = 4_000;

function createConfiguredAuthenticator(config: Config): Authenticate {
  if (!config.AUTHENTICATE_INBOUND) return skipAuthentication;
  const resolver = createResolver(config);
  return createAuthenticator({
    resolve: (name, type) => resolver.resolve(name, type),
    timeoutMs: AUTHENTICATION_TIMEOUT_MS,
  });
}
