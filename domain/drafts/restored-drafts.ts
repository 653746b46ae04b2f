import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import type { Draft } from './draft.entity.ts';

type RestoredDraft = Pick<Draft, 'id' | 'scheduleVersion'> & { isDue: boolean };

export interface RestoredDraftsOptions {
  database: Database;
  /** Whether the run of the schedule is known to have waited all the time. */
  isStillWaiting(draft: Pick<Draft, 'id' | 'scheduleVersion'>): Promise<boolean>;
  /** Keep the schedules that are due in the future, although their drafts may have been sent by hand. */
  keepsFutureSchedules: boolean;
}

const BATCH_SIZE = 200;
const RESTORED_ERROR =
  'The database was restored from a backup, and the draft may have been sent since the backup. Check the recipients, then schedule or send it again.';

/** Unschedules every scheduled draft of the backup that may have been sent since. The draft itself stays. */
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
  database: Database,
  { createdBefore, after }: { createdBefore: Date; after: string },
): Promise<RestoredDraft[]> {
  return database.query<RestoredDraft>(sql`
    select id, schedule_version as "scheduleVersion", send_at <= now() as "isDue" from drafts
    where send_status = 'scheduled' and created_at < ${createdBefore.toISOString()}::timestamptz and id > ${after}
    order by id limit ${BATCH_SIZE}`);
}

async function unschedule(database: Database, { id, scheduleVersion }: RestoredDraft): Promise<number> {
  const updated = await database.query<object>(sql`
    update drafts set send_status = 'draft', send_at = null, send_error = ${RESTORED_ERROR}, updated_at = now()
    where id = ${id} and schedule_version = ${scheduleVersion} and send_status = 'scheduled' returning id`);
  return updated.length;
}
