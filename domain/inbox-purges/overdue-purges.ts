import type { Database } from '../../platform/database/database.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { buildInboxPurgeStart } from '../inboxes/inbox-purge.ts';

/** Purges whose workflow run is missing. */
export function overduePurges(database: Database): OverdueSource {
  return {
    name: 'purges',
    async take(limit) {
      const rows = await takeOverdue<Pick<Inbox, 'id' | 'organizationId' | 'environmentId'>>(database, {
        table: 'inboxes',
        overdue: `purge_requested_at < now() - interval '2 minutes' and purged_at is null`,
        columns: 'id, org_id as "organizationId", env_id as "environmentId"',
        limit,
      });
      return rows.map((row) => ({ start: buildInboxPurgeStart(row), whenStopped: 'restart' as const }));
    },
  };
}
