import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueRun,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import { HELD_DETAIL } from '../outbound/held-sends.ts';
import type { Draft } from './draft.entity.ts';
import type { DraftService } from './draft.service.ts';
import { buildRescheduleSignal, buildScheduledSendStart } from './draft-schedule.ts';

type OverdueDraft = Pick<
  Draft,
  'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'scheduleVersion' | 'version'
> & { sendAt: Date };

/**
 * Scheduled drafts whose time has passed or whose run may be missing. If an operator ended the run, the draft is
 * unscheduled, with the reason in `send_error`. A run that is still waiting after the row's send time is signaled
 * again.
 */
export function overdueDrafts({ db }: Database, drafts: Pick<DraftService, 'cancelSchedule'>): OverdueSource {
  const runOf = (row: OverdueDraft): OverdueRun => ({
    start: buildScheduledSendStart(row, row.sendAt),
    whenRunning: buildRescheduleSignal(row, row.sendAt),
    whenStopped: () => drafts.cancelSchedule(row.id, row.scheduleVersion),
  });
  const selectScheduled = () => db.selectFrom('drafts').select('id').where('send_status', '=', 'scheduled');
  const take = (
    overdue: ReturnType<typeof selectScheduled>,
    options: { limit: number; recheckMinutes?: number },
  ) =>
    db
      .updateTable('drafts')
      .set(RECONCILED)
      .where('id', '=', lockOverdue(overdue, options))
      .returning([
        'id',
        'org_id as organizationId',
        'env_id as environmentId',
        'inbox_id as inboxId',
        'schedule_version as scheduleVersion',
        'version',
        sql<Date>`send_at`.as('sendAt'),
      ])
      .execute();
  return {
    name: 'drafts',
    async take(limit) {
      const due = await take(
        selectScheduled()
          .where('send_at', '<', minutesAgo(1))
          // A held draft has no run.
          .where('send_error', 'is distinct from', HELD_DETAIL),
        { limit },
      );
      // Future schedules are checked hourly, in case an operator ended their run.
      const waiting = await take(
        selectScheduled().where('send_at', '>', sql<Date>`now()`).where('updated_at', '<', minutesAgo(2)),
        { limit: limit - due.length, recheckMinutes: 60 },
      );
      return [...due.map(runOf), ...waiting.map((row) => ({ ...runOf(row), whenRunning: undefined }))];
    },
  };
}
