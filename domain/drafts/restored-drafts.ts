import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Draft } from './draft.entity.ts';

type RestoredDraft = Pick<Draft, 'id' | 'scheduleVersion'> & { isDue: boolean };

export interface RestoredDraftsOptions {
  database: Database;
  /** Whether the run of the schedule is known to have waited all the time. */
  isStillWaiting(draft: Pick<Draft, 'id' | 'scheduleVersion'>): Promise<boolean>;
  /** Keep schedules that are due in the future, although their drafts may have been sent manually. */
  keepsFutureSchedules: boolean;
}

const BATCH_SIZE = 200;
const RESTORED_ERROR =
  'The database was restored from a backup, and the draft may have been sent since the backup. Check the recipients, then schedule or send it again.';

/** Unschedules every scheduled draft that may have been sent since the backup. The draft itself stays. */
export async function reconcileRestoredDrafts(
  options: RestoredDraftsOptions,
  createdBefore: Date,
): Promise<{ kept: number; unscheduled: number }> {
  const counts = { kept: 0, unscheduled: 0 };
  for (let after = ''; ; ) {
    const drafts = await findScheduled(options.database, { createdBefore, after });
    for (const draft of drafts) {
      const isKept = !draft.isDue && (options.keepsFutureSchedules || (await options.isStillWaiting(draft)));
      if (isKept) counts.kept += 1;
      else counts.unscheduled += await unschedule(options.database, draft);
    }
    const last = drafts.at(-1);
    if (!last || drafts.length < BATCH_SIZE) return counts;
    after = last.id;
  }
}

function findScheduled(
  { db }: Database,
  { createdBefore, after }: { createdBefore: Date; after: string },
): Promise<RestoredDraft[]> {
  return db
    .selectFrom('drafts')
    .select(['id', 'schedule_version as scheduleVersion', sql<boolean>`send_at <= now()`.as('isDue')])
    .where('send_status', '=', 'scheduled')
    .where('created_at', '<', createdBefore)
    .where('id', '>', after)
    .orderBy('id')
    .limit(BATCH_SIZE)
    .execute();
}

async function unschedule({ db }: Database, { id, scheduleVersion }: RestoredDraft): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('drafts')
    .set({ send_status: 'draft', send_at: null, send_error: RESTORED_ERROR, updated_at: sql`now()` })
    .where('id', '=', id)
    .where('schedule_version', '=', scheduleVersion)
    .where('send_status', '=', 'scheduled')
    .executeTakeFirst();
  return Number(numUpdatedRows);
}
