import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { ImpersonationScope, Scope } from '../identity/scope.ts';

export interface ImpersonatedCall {
  operation: string;
  /** The id that the path names; undefined without one. */
  resourceId: string | undefined;
  isChange: boolean;
}

/** Records a call of an impersonation before it happens. If it cannot be recorded, it does not happen. */
export type RecordImpersonatedCall = (
  scope: Pick<Scope, 'organizationId' | 'requestId'> & { impersonation: ImpersonationScope },
  call: ImpersonatedCall,
) => Promise<void>;

/** Distinct resources that are kept for one impersonation; further ones are only counted. */
const MAX_RESOURCES = 1_000;

export function createImpersonationRecord({ database }: { database: Database }): RecordImpersonatedCall {
  return ({ organizationId, requestId, impersonation: { id } }, { operation, resourceId = '', isChange }) =>
    database.staffTransaction({ requestId }, async ({ db }) => {
      await db
        .insertInto('impersonated_operations')
        .columns(['impersonation_id', 'operation', 'resource_id', 'org_id', 'is_change', 'calls'])
        .expression((eb) =>
          eb
            .selectFrom('impersonated_operations')
            .select([
              sql<string>`${id}::text`.as('impersonation_id'),
              sql<string>`${operation}::text`.as('operation'),
              sql<string>`case when count(*) < ${MAX_RESOURCES} then ${resourceId}::text else '' end`.as(
                'resource_id',
              ),
              sql<string>`${organizationId}::text`.as('org_id'),
              sql<boolean>`${isChange}::boolean`.as('is_change'),
              sql<number>`1`.as('calls'),
            ])
            .where('impersonation_id', '=', id),
        )
        .onConflict((conflict) =>
          conflict
            .columns(['impersonation_id', 'operation', 'resource_id'])
            .doUpdateSet((eb) => ({ calls: eb('impersonated_operations.calls', '+', 1) })),
        )
        .execute();
    });
}
