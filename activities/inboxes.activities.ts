import { Context } from '@temporalio/activity';
import type { PurgeCounts } from '../domain/inbox-purges/purge.service.ts';
import type { PurgeService } from '../domain/inbox-purges/purge.service.ts';
import { withApplicationFailures } from './failures.ts';

export type InboxActivities = ReturnType<typeof createInboxActivities>;

export function createInboxActivities({ purges }: { purges: PurgeService }) {
  return {
    /** May run again at any time; what is gone is gone. */
    purgeInboxMail: ({ inboxId }: { inboxId: string }): Promise<PurgeCounts> =>
      withApplicationFailures(() => purges.purge(inboxId, (soFar) => Context.current().heartbeat(soFar))),
  };
}
