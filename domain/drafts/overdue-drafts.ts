import type { Database } from '../../platform/database/database.ts';
import { type OverdueRun, type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import { HELD_DETAIL } from '../outbound/held-sends.ts';
import type { Draft } from './draft.entity.ts';
import type { DraftService } from './draft.service.ts';
import { buildRescheduleSignal, buildScheduledSendStart } from './draft-schedule.ts';

type OverdueDraft = Pick<
  Draft,
  'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'scheduleVersion' | 'version'
> & {
  sendAt: string | Date;
};

const COLUMNS = `id, org_id as "organizationId", env_id as "environmentId", inbox_id as "inboxId",
  schedule_version as "scheduleVersion", version, send_at as "sendAt"`;
/** Held drafts have no run. */
const OVERDUE = `send_status = 'scheduled' and send_at < now() - interval '1 minute'
  and send_error is distinct from '${HELD_DETAIL}'`;
/** Future schedules are checked hourly, in case an operator ended their run. */
const WAITING = `send_status = 'scheduled' and send_at > now() and updated_at < now() - interval '2 minutes'`;

/**
 * Scheduled drafts whose time has passed, or whose run may be gone. If an operator ended the run, the draft is
 * unscheduled, with the reason in `send_error`. A run that is still waiting after the row's send time is signaled
 * again.
 */
export function overdueDrafts(
  database: Database,
  drafts: Pick<DraftService, 'cancelSchedule'>,
): OverdueSource {
  const runOf = (row: OverdueDraft): OverdueRun => {
    const sendAt = new Date(row.sendAt);
    return {
      start: buildScheduledSendStart(row, sendAt),
      whenRunning: buildRescheduleSignal(row, sendAt),
      whenStopped: () => drafts.cancelSchedule(row.id, row.scheduleVersion),
    };
  };
  return {
    name: 'drafts',
    async take(limit) {
      const table = 'drafts';
      const due = await takeOverdue<OverdueDraft>(database, {
        table,
        overdue: OVERDUE,
        columns: COLUMNS,
        limit,
      });
      const waiting = await takeOverdue<OverdueDraft>(database, {
        table,
        overdue: WAITING,
        columns: COLUMNS,
        limit: limit - due.length,
        recheckDelay: '1 hour',
      });
      return [...due.map(runOf), ...waiting.map((row) => ({ ...runOf(row), whenRunning: undefined }))];
    },
  };
}
