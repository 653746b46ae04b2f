import type { Database } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { ScheduleReader, ScheduleSummary } from '../../platform/temporal-runs/schedule-reader.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';

export type ScheduleAdministrationService = ReturnType<typeof createScheduleAdministrationService>;

export function createScheduleAdministrationService({
  database,
  outbox,
  schedules,
}: {
  database: Database;
  outbox: Pick<Outbox, 'enqueue'>;
  schedules: Pick<ScheduleReader, 'find'>;
}) {
  return {
    /**
     * Records the change with its reason, and calls Temporal after the commit.
     *
     * @returns the schedule before the change.
     * @throws AppError `not_found`; `conflict` if it is not paused; `unavailable` if Temporal does not respond.
     */
    async unpause(staff: StaffScope, scheduleId: string, note: string): Promise<ScheduleSummary> {
      const schedule = await schedules.find(scheduleId);
      if (!schedule) throw notFound('schedule', scheduleId);
      if (!schedule.isPaused)
        throw new AppError('conflict', {
          detail: `The schedule ${scheduleId} is not paused.`,
          fix: 'Nothing is left to do.',
        });
      await database.staffTransaction(staff, async (transaction) => {
        await recordStaffAudit(transaction.db, staff, {
          action: 'schedule.unpaused',
          resourceType: 'schedule',
          resourceId: scheduleId,
          reason: note,
          details: { paused_because: schedule.note },
        });
        outbox.enqueue(transaction, staff.staffId, { unpause: { scheduleId, note } });
      });
      return schedule;
    },
  };
}
