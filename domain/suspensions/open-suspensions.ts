import type { Database, TenantScope } from '../../platform/database/database.ts';

export type ListOpenSuspensions = ReturnType<typeof createOpenSuspensionList>;
export type OpenSuspension = Awaited<ReturnType<ListOpenSuspensions>>[number];

export const createOpenSuspensionList =
  ({ database }: { database: Database }) =>
  /** Why the organization itself is suspended, oldest first; empty if it is not. */
  (scope: TenantScope) =>
    database.read(scope, ({ db }) =>
      db
        .selectFrom('suspensions')
        .select(['reason', 'created_at as since'])
        .where('org_id', '=', scope.organizationId)
        .where('target_id', '=', scope.organizationId)
        .where('lifted_at', 'is', null)
        .orderBy('created_at')
        .orderBy('id')
        .execute(),
    );
