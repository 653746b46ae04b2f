import {
  createInboxPurgeService,
  type InboxPurgeService,
} from '../../domain/inbox-purges/inbox-purge.service.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import type { Database } from '../../platform/database/database.ts';
import type { OutboxCommand } from '../../platform/outbox/outbox-command.ts';
import type { Storage } from '../../platform/storage.ts';
import { recordingOutbox } from './test-app.ts';

/** The service that purges inboxes, with the commands of its changes. Without a storage, objects are deleted in name only. */
export function purgeServiceOf(
  database: Database,
  storage: Pick<Storage, 'deleteMany'> = { deleteMany: async () => undefined },
): InboxPurgeService & { commands: OutboxCommand[] } {
  const { outbox, commands } = recordingOutbox();
  const events = createWebhookEvents({ outbox });
  return { ...createInboxPurgeService({ database, outbox, storage, events }), commands };
}
