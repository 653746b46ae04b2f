import type { Database } from '../../platform/database/database.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import type { Scope } from '../identity/scope.ts';
import { monthOf, type Period } from './periods.ts';
import { type DailyUsage, readUsageHistory } from './usage-history.ts';
import { type LedgerEntry, type LedgerKind, listLedgerEntries } from './usage-ledger.ts';
import { readUsageStatuses, type UsageStatus } from './usage-status.ts';

export type UsageService = ReturnType<typeof createUsageService>;

export function createUsageService({
  database,
  now = () => new Date(),
}: {
  database: Database;
  now?: () => Date;
}) {
  return {
    /** Returns every counter with exact usage, in the order of the specification. */
    async getCurrent(scope: Scope): Promise<{ period: Period; counters: UsageStatus[] }> {
      const time = now();
      const counters = await database.read(scope, ({ db }) =>
        readUsageStatuses(db, { organizationIds: [scope.organizationId], at: time }),
      );
      return { period: monthOf(time), counters };
    },

    /**
     * Returns one row per day (UTC) from `start` to `end`, both included; days without usage have zeros.
     *
     * @throws AppError `validation_error` for more than `MAX_HISTORY_DAYS` days, or an end before the start.
     */
    getHistory: (scope: Scope, start: Date, end: Date): Promise<DailyUsage[]> =>
      database.read(scope, ({ db }) => readUsageHistory(db, scope.organizationId, { start, end })),

    /** Lists changes of counters and limits. */
    listLedger: (
      scope: Scope,
      { kind }: { kind: LedgerKind | undefined },
      page: PageRequest,
    ): Promise<Page<LedgerEntry>> =>
      database.read(scope, ({ db }) => listLedgerEntries(db, scope.organizationId, { kind, page })),
  };
}
