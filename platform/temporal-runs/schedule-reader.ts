import type { Client } from '@temporalio/client';

export interface ScheduleSummary {
  id: string;
  isPaused: boolean;
  /** Why it is paused, as the operator wrote it. */
  note: string | null;
  lastRunAt: Date | null;
  nextRunAt: Date | null;
}

export interface ScheduleReader {
  /** @throws Error if Temporal does not respond within two seconds. */
  list(): Promise<ScheduleSummary[]>;
}

const TIMEOUT_MS = 2_000;
const MAX_SCHEDULES = 100;

export function createScheduleReader({ connection, schedule }: Client): ScheduleReader {
  return {
    list: () =>
      connection.withDeadline(Date.now() + TIMEOUT_MS, async () => {
        const schedules: ScheduleSummary[] = [];
        for await (const { scheduleId, state, info } of schedule.list({ pageSize: MAX_SCHEDULES })) {
          schedules.push({
            id: scheduleId,
            isPaused: state.paused,
            note: state.note ?? null,
            lastRunAt: info?.recentActions.at(-1)?.takenAt ?? null,
            nextRunAt: info?.nextActionTimes.at(0) ?? null,
          });
          if (schedules.length === MAX_SCHEDULES) break;
        }
        return schedules.sort((a, b) => (a.id < b.id ? -1 : 1));
      }),
  };
}
