import { p } from '@mikro-orm/core';

/** A column for each of `COUNT_COLUMNS`: of what is counted, and of what is folded. */
export const countColumns = () => ({
  sent: p.integer().default(0),
  delivered: p.integer().default(0),
  bounced: p.integer().default(0),
  complained: p.integer().default(0),
  rejected: p.integer().default(0),
  received: p.integer().default(0),
  attempted: p.integer().default(0),
});
