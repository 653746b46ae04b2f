import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';

/**
 * Deletes messages of a purged organization in any status, with their receipts. Triggers release their stored objects.
 * Returns the number of deleted messages.
 */
export async function deleteOrganizationMessages(
  { db }: Database,
  organizationId: string,
  batchSize: number,
): Promise<number> {
  const row = await db
    .with('deleted', (cte) =>
      cte
        .deleteFrom('messages')
        .where('id', 'in', (eb) =>
          eb
            .selectFrom('messages')
            .select('id')
            .where('env_id', 'in', (environments) =>
              environments.selectFrom('environments').select('id').where('org_id', '=', organizationId),
            )
            .limit(batchSize),
        )
        .returning('id'),
    )
    .with('receipts', (cte) =>
      cte
        .deleteFrom('inbound_receipts')
        .where('id', 'in', (eb) =>
          eb.selectFrom('deleted').select(sql<string>`'rcp_' || substr(id, 5)`.as('receipt_id')),
        ),
    )
    .selectFrom('deleted')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirst();
  return row?.count ?? 0;
}
