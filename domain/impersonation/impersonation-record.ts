import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import type { ImpersonationScope, Scope } from '../identity/scope.ts';

export interface ImpersonatedCall {
  operation: string;
  /** The id that the path names; undefined without one. */
  resourceId: string | undefined;
  isChange: boolean;
}

/** Records what an impersonation calls, before the call: what cannot be recorded does not happen. */
export type RecordImpersonatedCall = (
  scope: Pick<Scope, 'organizationId' | 'requestId'> & { impersonation: ImpersonationScope },
  call: ImpersonatedCall,
) => Promise<void>;

/** Different resources kept for one impersonation; further ones are only counted. */
const MAX_RESOURCES = 1_000;

export function createImpersonationRecord({ database }: { database: Database }): RecordImpersonatedCall {
  return ({ organizationId, requestId, impersonation: { id } }, { operation, resourceId = '', isChange }) =>
    database.staffTransaction({ requestId }, async ({ em }) => {
      await em.execute(sql`
        insert into impersonated_operations (impersonation_id, operation, resource_id, org_id, is_change, calls, created_at)
        select ${id}, ${operation}, case when count(*) < ${MAX_RESOURCES} then ${resourceId} else '' end,
          ${organizationId}, ${isChange}, 1, now()
        from impersonated_operations where impersonation_id = ${id}
        on conflict (impersonation_id, operation, resource_id) do update set calls = impersonated_operations.calls + 1`);
    });
}
