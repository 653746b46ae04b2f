import {
  bounceDomain,
  type Config,
  feedbackAddress,
  inboundMxHost,
  spfMechanism,
} from '../platform/config.ts';
import { createSecretBox } from '../platform/crypto.ts';
import type { Database } from '../platform/database/database.ts';
import { createDnsLookup } from '../platform/dns.ts';
import { simulatorDomain } from '../platform/mail-transport/simulator-transport.ts';
import type { Outbox } from '../platform/outbox/outbox.ts';
import { createReturnPaths } from '../platform/return-path.ts';
import type { Storage } from '../platform/storage.ts';
import { createAttachmentService } from './attachments/attachment.service.ts';
import { createDraftService } from './drafts/draft.service.ts';
import { createReceiptService } from './inbound/receipt.service.ts';
import { createCredentialService } from './inboxes/credential.service.ts';
import { createNotificationService } from './notifications/notification.service.ts';
import { createOutcomeService } from './outbound/outcome.service.ts';
import { createWebhookEvents } from './webhooks/webhook-events.ts';

export interface SharedServicesOptions {
  config: Config;
  database: Database;
  /** The login of a worker, which sees every tenant: inbound mail may be anybody's. */
  workerDatabase: Database;
  outbox: Outbox;
  storage: Storage;
}

export type SharedServices = ReturnType<typeof createSharedServices>;

/** What both the API and the workers use, built once here so that both follow the same settings. */
export function createSharedServices({
  config,
  database,
  workerDatabase,
  outbox,
  storage,
}: SharedServicesOptions) {
  const events = createWebhookEvents({ outbox });
  const returnPaths = createReturnPaths({ signingKey: config.SIGNING_KEY, domain: bounceDomain(config) });
  return {
    events,
    returnPaths,
    secretBox: createSecretBox(config.ENCRYPTION_KEY),
    notifications: createNotificationService({ outbox }),
    drafts: createDraftService({ database, outbox, events }),
    credentials: createCredentialService({ database }),
    attachments: createAttachmentService({ database, storage }),
    receipts: createReceiptService({
      database: workerDatabase,
      outbox,
      returnPaths,
      storage,
      feedbackAddress: feedbackAddress(config),
    }),
    outcomes: createOutcomeService({
      events,
      outbox,
      retryWindowMs: config.MAIL_RETRY_WINDOW_HOURS * 3_600_000,
      simulatorDomain: simulatorDomain(config.MAIL_DOMAIN),
    }),
    dns: createDnsLookup(config),
    /** Values of the DNS records that a domain has to publish. */
    dnsSettings: { spfMechanism: spfMechanism(config), mxHost: inboundMxHost(config) },
  };
}
