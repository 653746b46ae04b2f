import { Context } from '@temporalio/activity';
import type { Purged, PurgeService } from '../domain/inboxes/purge.service.ts';
import { asFailure } from './failures.ts';

export type InboxActivities = ReturnType<typeof createInboxActivities>;

export function createInboxActivities({ purges }: { purges: PurgeService }) {
  return {
    /** May run again at any time; what is gone is gone. */
    purgeMail: ({ inboxId }: { inboxId: string }): Promise<Purged> =>
      asFailure(() => purges.purge(inboxId, (soFar) => Context.current().heartbeat(soFar))),
  };
}
