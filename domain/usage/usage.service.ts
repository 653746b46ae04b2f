import type { Database } from '../../platform/database/database.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import type { Scope } from '../identity/scope.ts';
import { monthOf, type Period } from './periods.ts';
import { type DailyUsage, readUsageHistory } from './usage-history.ts';
import { type LedgerEntry, type LedgerKind, listLedgerEntries } from './usage-ledger.ts';
import { readUsageStatuses, type UsageStatus } from './usage-status.ts';

export interface UsageService {
  /** Returns every counter with exact usage, in the order of the specification. */
  getCurrent(scope: Scope): Promise<{ period: Period; counters: UsageStatus[] }>;
  /**
   * Returns one row per day (UTC) from `start` to `end`, both included; days without usage have zeros.
   *
   * @throws AppError `validation_error` for more than `MAX_HISTORY_DAYS` days, or an end before the start.
   */
  getHistory(scope: Scope, start: Date, end: Date): Promise<DailyUsage[]>;
  /** Returns what changed counters and limits. */
  listLedger(
    scope: Scope,
    filter: { kind: LedgerKind | undefined },
    page: PageRequest,
  ): Promise<Page<LedgerEntry>>;
}

export function createUsageService({
  database,
  now = () => new Date(),
}: {
  database: Database;
  now?: () => Date;
}): UsageService {
  return {
    async getCurrent(scope) {
      const time = now();
      const counters = await database.read(scope, (reader) =>
        readUsageStatuses(reader, { organizationIds: [scope.organizationId], at: time }),
      );
      return { period: monthOf(time), counters };
    },

    getHistory: (scope, start, end) =>
      database.read(scope, (reader) => readUsageHistory(reader, scope.organizationId, { start, end })),

    listLedger: (scope, { kind }, page) =>
      database.read(scope, (reader) => listLedgerEntries(reader, scope.organizationId, { kind, page })),
  };
}
