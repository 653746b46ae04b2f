import { Context } from '@temporalio/activity';
import type { AnnouncementMailing } from '../domain/announcements/mail-announcement.ts';
import { withApplicationFailures } from './failures.ts';

export type AnnouncementActivities = ReturnType<typeof createAnnouncementActivities>;

export function createAnnouncementActivities({ mailing }: { mailing: AnnouncementMailing }) {
  return {
    /** Creates the emails of an announcement that are missing. @returns how it ended. */
    mailOwners: ({ announcementId }: { announcementId: string }): Promise<string> =>
      withApplicationFailures(async () => {
        for (;;) {
          const batch = await mailing.mailBatch(announcementId);
          Context.current().heartbeat(batch.total);
          if (batch.kind === 'withdrawn') return `withdrawn after ${batch.total} email(s)`;
          if (batch.kind === 'done') return `mailed ${batch.total} owner(s)`;
          Context.current().cancellationSignal.throwIfAborted();
        }
      }),
  };
}
