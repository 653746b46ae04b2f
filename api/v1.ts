import type { FastifyInstance } from 'fastify';
import type { Config } from '../platform/config.ts';
import type { Cursors } from '../platform/cursor.ts';
import { apiKeyRoutes } from './api-keys/api-keys.routes.ts';
import { attachmentRoutes } from './attachments/attachments.routes.ts';
import { listRoutes } from './deliverability/lists.routes.ts';
import { suppressionRoutes } from './deliverability/suppressions.routes.ts';
import { domainRoutes } from './domains/domains.routes.ts';
import { draftRoutes } from './drafts/drafts.routes.ts';
import { eventStreamRoutes } from './events/event-stream.routes.ts';
import { eventRoutes } from './events/events.routes.ts';
import { exportRoutes } from './exports/exports.routes.ts';
import { credentialRoutes } from './inboxes/credentials.routes.ts';
import { inboxRoutes } from './inboxes/inboxes.routes.ts';
import type { Lists } from './lists.ts';
import { deletionRoutes } from './messages/deletions.routes.ts';
import { labelRoutes } from './messages/labels.routes.ts';
import { messageRoutes } from './messages/messages.routes.ts';
import { rawRoutes } from './messages/raw.routes.ts';
import { threadRoutes } from './messages/threads.routes.ts';
import { waitRoutes } from './messages/wait.routes.ts';
import { metricRoutes } from './metrics/metrics.routes.ts';
import { organizationRoutes } from './organizations/organization.routes.ts';
import { replyRoutes } from './outbound/replies.routes.ts';
import type { OpenResponses } from './plugins/open-responses.ts';
import { rawMailRoutes } from './providers/raw-mail.routes.ts';
import { sesNotificationRoutes } from './providers/ses-notifications.routes.ts';
import { retentionPolicyRoutes } from './retention/retention-policy.routes.ts';
import type { Services } from './services.ts';
import { usageRoutes } from './usage/usage.routes.ts';
import { deliveryRoutes } from './webhooks/deliveries.routes.ts';
import { endpointOperationRoutes } from './webhooks/endpoint-operations.routes.ts';
import { endpointRoutes } from './webhooks/endpoints.routes.ts';

/** What route files may ask for: each names those parts of it that it uses. */
export interface RouteParts extends Services {
  config: Config;
  lists: Lists;
  cursors: Cursors;
  openResponses: OpenResponses;
  /** How often an answer that stays open shows that it is alive, and its credential is checked again. */
  heartbeatMs: number;
}

/** Every route of the API, one line a file. */
export async function registerRoutes(app: FastifyInstance, parts: RouteParts): Promise<void> {
  await app.register(
    async (v1) => {
      await v1.register(organizationRoutes(parts));
      await v1.register(usageRoutes(parts));
      await v1.register(retentionPolicyRoutes(parts));
      await v1.register(apiKeyRoutes(parts));
      await v1.register(domainRoutes(parts));
      await v1.register(inboxRoutes(parts));
      await v1.register(credentialRoutes(parts));
      await v1.register(draftRoutes(parts));
      await v1.register(messageRoutes(parts));
      await v1.register(waitRoutes(parts));
      await v1.register(labelRoutes(parts));
      await v1.register(deletionRoutes(parts));
      await v1.register(attachmentRoutes(parts));
      await v1.register(replyRoutes(parts));
      await v1.register(rawRoutes(parts));
      await v1.register(threadRoutes(parts));
      await v1.register(suppressionRoutes(parts));
      await v1.register(listRoutes(parts));
      await v1.register(exportRoutes(parts));
      await v1.register(rawMailRoutes(parts));
      await v1.register(sesNotificationRoutes(parts));
      for (const path of ['/webhooks/endpoints', '/webhook-endpoints'] as const) {
        await v1.register(endpointRoutes({ ...parts, path }));
        await v1.register(endpointOperationRoutes({ ...parts, path }));
      }
      await v1.register(deliveryRoutes(parts));
      await v1.register(metricRoutes(parts));
      await v1.register(eventRoutes(parts));
      await v1.register(eventStreamRoutes(parts));
    },
    { prefix: '/api/v1' },
  );
  // The specification writes these without the prefix.
  await app.register(retentionPolicyRoutes({ ...parts, unversioned: true }));
  await app.register(exportRoutes({ ...parts, unversioned: true }));
}
