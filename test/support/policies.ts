import type { Updateable } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Tables } from '../../platform/database/tables.ts';

export type TestPolicies = Updateable<Tables['organization_policies']>;

/** Sets policies of an organization; its other policies stay as they are. */
export async function setPolicies(
  { db }: Pick<Database, 'db'>,
  organizationId: string,
  policies: TestPolicies,
): Promise<void> {
  await db
    .insertInto('organization_policies')
    .values({ org_id: organizationId, ...policies })
    .onConflict((conflict) => conflict.column('org_id').doUpdateSet({ ...policies, updated_at: new Date() }))
    .execute();
}
