import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';

/** @throws AppError `not_found`. A closed organization is found. */
export async function requireOrganization(db: Db, id: string): Promise<void> {
  await db
    .selectFrom('organizations')
    .select('id')
    .where('id', '=', id)
    .executeTakeFirstOrThrow(() => notFound('organization', id));
}
