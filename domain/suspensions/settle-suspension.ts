import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import type { SuspensionRun } from '../../workflows/suspensions/settle-held-work.contract.ts';
import { buildSuspensionStart } from './suspension-start.ts';

/** Records that the held work is settled, unless the suspension has been lifted since the run began. */
export async function markSettled(database: Database, { id, change }: SuspensionRun): Promise<void> {
  await database.db
    .updateTable('suspensions')
    .set({ settled_at: sql`now()` })
    .where('id', '=', id)
    .where('settled_at', 'is', null)
    .where('lifted_at', change === 'suspended' ? 'is' : 'is not', null)
    .execute();
}

/** Suspensions whose run is missing. A run that an operator stopped starts again: held work would wait without end. */
export function overdueSuspensions(database: Database): OverdueSource {
  return {
    name: 'suspensions',
    async take(limit) {
      const rows = await takeOverdue<Parameters<typeof buildSuspensionStart>[0]>(database, {
        table: 'suspensions',
        overdue: `settled_at is null and changed_at < now() - interval '2 minutes'`,
        columns: `id, org_id as "organizationId", target_type as "targetType", target_id as "targetId", reason,
          lifted_at as "liftedAt"`,
        limit,
      });
      return rows.map((row) => ({ start: buildSuspensionStart(row), whenStopped: 'restart' as const }));
    },
  };
}
