import { sql } from '@mikro-orm/core';
import type { RowReader } from '../../platform/database/find-rows.ts';
import { notFound } from '../../platform/errors.ts';

/** @throws AppError `not_found`. A closed organization is found. */
export async function requireOrganization(reader: RowReader, id: string): Promise<void> {
  const rows = await reader.execute<object[]>(sql`select from organizations where id = ${id}`);
  if (rows.length === 0) throw notFound('organization', id);
}
