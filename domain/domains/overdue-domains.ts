import type { Database } from '../../platform/database/database.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import type { VerificationService } from './verification.service.ts';
import { buildVerificationStart } from './verification-run.ts';

/** Domains whose next check is overdue. If an operator ended the run, the verification ends with that reason. */
export function overdueDomains(
  { db }: Database,
  verifications: Pick<VerificationService, 'stop'>,
): OverdueSource {
  return {
    name: 'domains',
    async take(limit) {
      const overdue = db.selectFrom('domains').select('id').where('next_check_at', '<', minutesAgo(5));
      const rows = await db
        .updateTable('domains')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit }))
        .returning(['id', 'org_id as organizationId', 'generation'])
        .execute();
      return rows.map((row) => ({
        start: buildVerificationStart(row),
        whenStopped: () => verifications.stop(row.id, row.generation),
      }));
    },
  };
}
