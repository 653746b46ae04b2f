import { type SelectQueryBuilder, sql } from 'kysely';
import { type Page, type PageRequest, toPage } from '../pagination.ts';

/**
 * Reads a keyset page of a query in order of id, which is the order of creation.
 *
 * @param query selects `id`, without an order and a limit.
 * @param id the column of the id in the statement, such as `messages.id`.
 */
export async function findPage<DB, Table extends keyof DB, Row extends { id: string }>(
  query: SelectQueryBuilder<DB, Table, Row>,
  id: string,
  { after: [after] = [], order, limit }: PageRequest,
): Promise<Page<Row>> {
  const column = sql.ref<string>(id);
  const rest = after === undefined ? query : query.where(column, order === 'asc' ? '>' : '<', after);
  // One more than the page shows whether another one follows.
  const rows = await rest
    .orderBy(column, order)
    .limit(limit + 1)
    .execute();
  return toPage(rows as Row[], limit, (row) => [row.id]);
}
