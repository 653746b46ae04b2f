import { createAttachmentTextService } from '../../domain/attachments/attachment-text.service.ts';
import { createDeliverability } from '../../domain/deliverability/create-deliverability.ts';
import { createDomainService, forgetCatchAllInbox } from '../../domain/domains/domain.service.ts';
import { lockVerifiedDomain } from '../../domain/domains/verified-domain.ts';
import { createDrafts } from '../../domain/drafts/create-drafts.ts';
import { unscheduleDraftsOfInbox } from '../../domain/drafts/deleted-inbox-drafts.ts';
import { createEventReaderService } from '../../domain/events/event-reader.service.ts';
import { createEventStreams } from '../../domain/events/event-stream.ts';
import { createExportService } from '../../domain/exports/export.service.ts';
import { createInboxService } from '../../domain/inboxes/inbox.service.ts';
import { createMessages } from '../../domain/messages/create-messages.ts';
import { createMetricService } from '../../domain/metrics/metric.service.ts';
import { cancelUnsentOfInbox } from '../../domain/outbound/cancel-send.ts';
import { createOutbound } from '../../domain/outbound/create-outbound.ts';
import { createOverviewService } from '../../domain/overview/overview.service.ts';
import { createRefusalService } from '../../domain/refusals/refusal.service.ts';
import { createRequests } from '../../domain/requests/create-requests.ts';
import { createRetentionPolicyService } from '../../domain/retention/retention-policy.service.ts';
import type { SharedServices } from '../../domain/shared-services.ts';
import { createUsage } from '../../domain/usage/create-usage.ts';
import { createWebhooks } from '../../domain/webhooks/create-webhooks.ts';
import { releaseUsageLimited } from '../../domain/webhooks/release-usage-limited.ts';
import { bounceDomain, feedbackAddress } from '../../platform/config.ts';
import { createTargetCheck, readEgressOptions } from '../../platform/egress/egress.ts';
import { createEventSignals } from '../../platform/event-signals.ts';
import type { ServiceOptions } from './service-options.ts';

/** Inboxes, messages, drafts, domains, events and what counts them. */
export function createMailRooms(
  { config, database, outbox, storage, logger, converter, fileReader, metrics }: ServiceOptions,
  { events, secretBox, sending, ...shared }: SharedServices,
) {
  const accessSignals = createEventSignals({
    url: config.SIGNALS_DATABASE_URL ?? config.DATABASE_URL,
    logger,
  });
  const eventStreams = createEventStreams({ database, signals: accessSignals, logger });
  const messages = createMessages({ database, storage, outbox, events, eventStreams, converter });
  const metricService = createMetricService({ database });
  return {
    accessSignals,
    eventStreams,
    eventReader: createEventReaderService({ database }),
    credentials: shared.credentials,
    drafts: shared.drafts,
    attachments: shared.attachments,
    attachmentTexts: createAttachmentTextService({ database, storage, reader: fileReader }),
    inboxes: createInboxService({
      database,
      outbox,
      mailDomain: config.MAIL_DOMAIN,
      feedbackAddress: feedbackAddress(config),
      lockVerifiedDomain,
      async onDelete(transaction, inboxId) {
        await cancelUnsentOfInbox(transaction, outbox, inboxId);
        await unscheduleDraftsOfInbox(transaction, outbox, inboxId);
        await forgetCatchAllInbox(transaction.db, inboxId);
      },
    }),
    ...messages,
    ...createOutbound({
      ...sending,
      converter,
      drafts: shared.draftCreation,
      messages: messages.messages,
      eventStreams,
    }),
    ...createDrafts({ ...sending, converter, eventStreams }),
    ...createDeliverability({
      database,
      unsubscribeLinks: shared.unsubscribeLinks,
      sharedDomainLimit: sending.sharedDomainLimit,
      authenticatesMail: config.AUTHENTICATE_INBOUND,
    }),
    ...createWebhooks({
      database,
      outbox,
      secretBox,
      findTargetRefusal: createTargetCheck(readEgressOptions(config)),
    }),
    domains: createDomainService({
      database,
      outbox,
      events,
      secretBox,
      dns: shared.dns,
      settings: shared.dnsSettings,
      ownDomains: [config.MAIL_DOMAIN, bounceDomain(config)],
    }),
    retentionPolicies: createRetentionPolicyService({ database, outbox }),
    refusals: createRefusalService({ database }),
    ...createRequests({ database, logger, onDropped: (count) => metrics?.droppedRequests.inc(count) }),
    exports: createExportService({ database, outbox, storage }),
    metrics: metricService,
    overview: createOverviewService({ database, metrics: metricService }),
    ...createUsage({
      database,
      logger,
      onChange: async (transaction, organizationId) => {
        await releaseUsageLimited(transaction, outbox, { organizationId, now: new Date() });
      },
    }),
  };
}
