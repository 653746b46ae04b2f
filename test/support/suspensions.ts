import { createHeldWorkService } from '../../domain/administration/held-work.service.ts';
import { createDraftService } from '../../domain/drafts/draft.service.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createNotifySuspension } from '../../domain/notifications/notify-suspension.ts';
import type { SuspensionReason } from '../../domain/suspensions/suspension.entity.ts';
import {
  createSuspensionService,
  type SuspensionTarget,
} from '../../domain/suspensions/suspension.service.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import type { Database } from '../../platform/database/database.ts';
import { TEST_APPROVAL_MS, testUnsubscribeLinks } from './mail-services.ts';
import { recordingOutbox } from './test-app.ts';

/** Suspends and reinstates as the service does, and settles the held work as the run does. */
export function arrangeSuspensions(database: Database) {
  const { outbox, commands } = recordingOutbox();
  const events = createWebhookEvents({ outbox });
  const suspensions = createSuspensionService({
    outbox,
    onChange: createNotifySuspension(createNotificationService({ outbox })),
  });
  const drafts = createDraftService({
    notifications: createNotificationService({ outbox }),
    database,
    outbox,
    events,
    approvalMs: TEST_APPROVAL_MS,
    unsubscribeLinks: testUnsubscribeLinks,
  });
  const heldWork = createHeldWorkService({ database, outbox, events, drafts });
  const change =
    (method: 'suspend' | 'reinstate') =>
    (target: SuspensionTarget, reason: SuspensionReason = 'support') =>
      database.systemTransaction((transaction) =>
        suspensions[method](transaction, target, {
          reason,
          note: 'Test',
          actor: { kind: 'staff', id: 'usr_staff' },
        }),
      );
  const settle = async (organizationId: string) => {
    const rejected = await heldWork.reject(organizationId, () => undefined);
    return { rejected, released: await heldWork.release(organizationId, () => undefined) };
  };
  return {
    outbox,
    commands,
    suspensions,
    drafts,
    heldWork,
    suspend: change('suspend'),
    reinstate: change('reinstate'),
    settle,
    /** How often a run was started. */
    startsOf: (workflowId: string) => commands.filter(({ start }) => start?.workflowId === workflowId).length,
  };
}
