import type { PurgeCounts, PurgeService } from '../domain/inbox-purges/purge.service.ts';
import { withApplicationFailures } from './failures.ts';
import { heartbeatBetweenSteps } from './heartbeats.ts';

export type InboxActivities = ReturnType<typeof createInboxActivities>;

export function createInboxActivities({ purges }: { purges: PurgeService }) {
  return {
    /** Idempotent: a retry continues with the remaining rows. */
    purgeInboxMail: ({ inboxId }: { inboxId: string }): Promise<PurgeCounts> =>
      withApplicationFailures(() => purges.purge(inboxId, (counts) => heartbeatBetweenSteps(counts))),
  };
}
