import { RawQueryFragment } from '@mikro-orm/core';

/**
 * A SQL fragment with its values, as the ORM's `sql` template creates it. Fragments nest, a list of values expands (`in
 * (${ids})`; an empty list is a syntax error), and text is sent as a bound parameter (`bindParameters`). Where PostgreSQL
 * cannot tell its type (`jsonb_build_object`, `… is null`), add a cast. Two placeholders need a character between them, because the ORM reads `??` as an identifier. Write the SQL operator `?` as `\\?`.
 */
export type Sql = RawQueryFragment;

/** Joins fragments. The ORM's template cannot, because it expands a list as values. */
export function joinSql(
  pieces: readonly Sql[],
  separator: ' and ' | ' or ' | ' union all ' | ', ' | ' ',
): Sql {
  return new RawQueryFragment(pieces.map(() => '?').join(separator), [...pieces]);
}
