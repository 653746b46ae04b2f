import { Context } from '@temporalio/activity';
import type { PurgeCounts, PurgeService } from '../domain/inbox-purges/purge.service.ts';
import { withApplicationFailures } from './failures.ts';

export type InboxActivities = ReturnType<typeof createInboxActivities>;

export function createInboxActivities({ purges }: { purges: PurgeService }) {
  return {
    /** Idempotent: continues with whatever is left. */
    purgeInboxMail: ({ inboxId }: { inboxId: string }): Promise<PurgeCounts> =>
      withApplicationFailures(() => purges.purge(inboxId, (soFar) => Context.current().heartbeat(soFar))),
  };
}
