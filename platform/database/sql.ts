import { RawQueryFragment } from '@mikro-orm/core';

/**
 * A piece of SQL with its values, as the ORM's `sql` template makes it. Pieces nest, a list of values expands (`in
 * (${ids})`; an empty list is a syntax error), and every value is quoted into the statement. Two placeholders need a
 * character between them, because the ORM reads `??` as an identifier, and a `?` of SQL itself is written `\\?`.
 */
export type Sql = RawQueryFragment;

/** Joins pieces, which the ORM's template cannot: a list expands there as values. */
export function joinSql(pieces: readonly Sql[], separator: ' and ' | ' union all ' | ', '): Sql {
  return new RawQueryFragment(pieces.map(() => '?').join(separator), [...pieces]);
}
