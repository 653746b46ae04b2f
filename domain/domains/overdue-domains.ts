import type { Database } from '../../platform/database/database.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import type { Domain } from './domain.entity.ts';
import type { VerificationService } from './verification.service.ts';
import { buildVerificationStart } from './verification-episode.ts';

/** Domains whose next check is overdue. If an operator ended the run, the verification ends with that reason. */
export function overdueDomains(
  database: Database,
  verifications: Pick<VerificationService, 'stop'>,
): OverdueSource {
  return {
    name: 'domains',
    async take(limit) {
      const rows = await takeOverdue<Pick<Domain, 'id' | 'organizationId' | 'episode'>>(database, {
        table: 'domains',
        overdue: `next_check_at < now() - interval '5 minutes'`,
        columns: 'id, org_id as "organizationId", episode',
        limit,
      });
      return rows.map((row) => ({
        start: buildVerificationStart(row),
        whenStopped: () => verifications.stop(row.id, row.episode),
      }));
    },
  };
}
