import { type Client, ScheduleNotFoundError } from '@temporalio/client';
import { AppError } from '../errors.ts';

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
  /**
   * As it is now: the list lags behind.
   *
   * @returns undefined if there is none. @throws AppError `unavailable`.
   */
  find(id: string): Promise<ScheduleSummary | undefined>;
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

    find: (id) =>
      connection.withDeadline(Date.now() + TIMEOUT_MS, async () => {
        try {
          const { state, info } = await schedule.getHandle(id).describe();
          return {
            id,
            isPaused: state.paused,
            note: state.note ?? null,
            lastRunAt: info.recentActions.at(-1)?.takenAt ?? null,
            nextRunAt: info.nextActionTimes.at(0) ?? null,
          };
        } catch (error) {
          if (error instanceof ScheduleNotFoundError) return undefined;
          throw new AppError('unavailable', {
            detail: 'Temporal did not answer in time.',
            fix: 'Repeat the request; if this continues, check the Temporal server.',
            cause: error,
          });
        }
      }),
  };
}
