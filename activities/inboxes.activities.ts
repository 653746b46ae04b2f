import type { InboxPurgeService, PurgeCounts } from '../domain/inbox-purges/inbox-purge.service.ts';
import { withApplicationFailures } from './failures.ts';
import { heartbeatBetweenSteps } from './heartbeats.ts';

export type InboxActivities = ReturnType<typeof createInboxActivities>;

export function createInboxActivities({ purges }: { purges: InboxPurgeService }) {
  return {
    /** Idempotent: a retry continues with the remaining rows. */
    purgeInboxMail: ({ inboxId }: { inboxId: string }): Promise<PurgeCounts> =>
      withApplicationFailures(() => purges.purge(inboxId, (counts) => heartbeatBetweenSteps(counts))),
  };
}
