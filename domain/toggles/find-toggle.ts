import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import type { ToggleName } from './toggle-names.ts';

/**
 * SQL: staff have turned the toggle off. Each decision reads the row, by its key: no process keeps a copy, so a change holds
 * in all of them with their next statement.
 */
export const isSwitchedOff = (name: ToggleName) =>
  sql<boolean>`exists (select from toggles where name = ${name} and not enabled)`;

export async function isOff(db: Db, name: ToggleName): Promise<boolean> {
  const row = await db.selectFrom('toggles').select('enabled').where('name', '=', name).executeTakeFirst();
  return row?.enabled === false;
}

/** @throws AppError `switched_off`. */
export async function requireOn(db: Db, name: ToggleName): Promise<void> {
  if (!(await isOff(db, name))) return;
  throw new AppError('switched_off', {
    detail: 'The operator of the service has switched this off for now.',
    fix: 'Try again later, or contact the operator.',
    extensions: { toggle: name },
  });
}
