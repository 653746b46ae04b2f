import { sql } from '@mikro-orm/core';
import type { Database, TenantScope } from '../../platform/database/database.ts';
import type { SuspensionReason } from './suspension.entity.ts';

export interface OpenSuspension {
  reason: SuspensionReason;
  since: Date;
}

/** Why the organization itself is suspended, oldest first; empty if it is not. */
export type ListOpenSuspensions = (scope: TenantScope) => Promise<OpenSuspension[]>;

export const createOpenSuspensionList =
  ({ database }: { database: Database }): ListOpenSuspensions =>
  (scope) =>
    database.read(scope, async (reader) => {
      const rows = await reader.execute<{ reason: SuspensionReason; since: string }[]>(sql`
        select reason, created_at as since from suspensions
        where org_id = ${scope.organizationId} and target_id = ${scope.organizationId} and lifted_at is null
        order by created_at, id`);
      return rows.map(({ reason, since }) => ({ reason, since: new Date(since) }));
    });
