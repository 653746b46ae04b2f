import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { json, oneOf, timestamp } from '../database/columns.ts';

/**
 * What `npm run restore` did to the bucket. `comparing`: it compares the objects with the backup and has copied none so far;
 * `copying`: the bucket lacked objects, and the copy is not complete. Both are unfinished. `complete`: the bucket lacked
 * nothing, so it was not restored. `restored`: it lacked objects. `untouched`: `--no-objects`.
 */
export const RESTORED_STORAGE = ['comparing', 'copying', 'complete', 'restored', 'untouched'] as const;
export type RestoredStorage = (typeof RESTORED_STORAGE)[number];

/** The database was restored from a backup. Until it is reconciled, no worker takes work, since mail could be sent again. */
export const RestoreEntity = defineEntity({
  name: 'Restore',
  tableName: 'restores',
  indexes: [
    {
      name: 'restores_pending_index',
      expression: 'create index "restores_pending_index" on "restores" ("id") where "reconciled_at" is null',
    },
  ],
  checks: [{ name: 'restores_storage', expression: oneOf('storage', RESTORED_STORAGE) }],
  properties: {
    id: p.bigint('number').primary().autoincrement(),
    /** What happened after this time is missing from the database. Null if the time is unknown. */
    restoredTo: timestamp().strictNullable(),
    /** Null if the database was restored by other means than `npm run restore`. */
    storage: p.text().$type<RestoredStorage>().strictNullable(),
    /** Rows that were created later are not affected. */
    markedAt: timestamp(),
    reconciledAt: timestamp().strictNullable(),
    /** What `npm run restore:reconcile` did, by kind. */
    counts: json(p.json().$type<Record<string, number>>().strictNullable()),
  },
});

export type Restore = InferEntity<typeof RestoreEntity>;
