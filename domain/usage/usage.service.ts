import type { Database } from '../../platform/database/database.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import type { Scope } from '../identity/scope.ts';
import { monthOf, type Period } from './periods.ts';
import { readStandings, type Standing } from './standings.ts';
import { type DayOfUsage, readHistory } from './usage-history.ts';
import { type LedgerEntry, type LedgerKind, listLedger } from './usage-ledger.ts';

export interface UsageService {
  /** Every counter, in the order of the specification, exact to the moment. */
  read(scope: Scope): Promise<{ period: Period; standings: Standing[] }>;
  /**
   * A row for each day (UTC) from `start` to `end`, both included, also where nothing happened.
   *
   * @throws AppError `validation_error` for more days than {@link MAX_HISTORY_DAYS}, or an end before its start.
   */
  history(scope: Scope, start: Date, end: Date): Promise<DayOfUsage[]>;
  /** What moved the counters and their limits. */
  ledger(
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
    async read(scope) {
      const time = now();
      const standings = await database.transaction(scope, ({ em }) =>
        readStandings(em, { organizationIds: [scope.organizationId], now: time }),
      );
      return { period: monthOf(time), standings };
    },

    history: (scope, start, end) =>
      database.transaction(scope, ({ em }) => readHistory(em, scope.organizationId, { start, end })),

    ledger: (scope, { kind }, page) =>
      database.transaction(scope, ({ em }) => listLedger(em, scope.organizationId, { kind, page })),
  };
}
