import { sql } from '@mikro-orm/core';
import type { RowReader } from '../../platform/database/find-rows.ts';
import type { Sql } from '../../platform/database/sql.ts';
import { AppError } from '../../platform/errors.ts';
import type { ToggleName } from './toggle-names.ts';

/**
 * SQL: staff have turned the toggle off. Each decision reads the row, by its key: no process keeps a copy, so a change holds
 * in all of them with their next statement.
 */
export const isOffSql = (name: ToggleName): Sql =>
  sql`exists (select from toggles where name = ${name} and not enabled)`;

export async function isOff(reader: Pick<RowReader, 'execute'>, name: ToggleName): Promise<boolean> {
  const rows = await reader.execute<object[]>(sql`select from toggles where name = ${name} and not enabled`);
  return rows.length > 0;
}

/** @throws AppError `switched_off`. */
export async function requireOn(reader: Pick<RowReader, 'execute'>, name: ToggleName): Promise<void> {
  if (!(await isOff(reader, name))) return;
  throw new AppError('switched_off', {
    detail: 'The operator of the service has switched this off for now.',
    fix: 'Try again later, or contact the operator.',
    extensions: { toggle: name },
  });
}
