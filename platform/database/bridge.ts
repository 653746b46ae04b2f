import type { EntityManager } from '@mikro-orm/postgresql';
import type { RowReader } from './find-rows.ts';
import type { Db } from './tables.ts';

/**
 * Joins both ways to the database while rooms move from entities to typed statements: a converted function calls one that
 * is not, or the other way round. Goes with the last `em`.
 */
const dbs = new WeakMap<EntityManager, Db>();
const entityManagers = new WeakMap<Db, () => EntityManager>();

export function bridge(db: Db, getEntityManager: () => EntityManager): void {
  entityManagers.set(db, getEntityManager);
}

export function bridgeBack(em: EntityManager, db: Db): void {
  dbs.set(em, db);
}

/** The statements of the transaction that `em` works in. */
export function dbOf(em: EntityManager): Db {
  const db = dbs.get(em);
  if (!db) throw new Error('This entity manager has no typed statements');
  return db;
}

/** What a converted function takes while some of its callers still have an entity manager, or what `Database.read` passes. */
export function toDb(db: Db | EntityManager | RowReader): Db {
  if ('getExecutor' in db) return db;
  return 'db' in db ? (db.db as Db) : dbOf(db as EntityManager);
}

/** The entity manager of the transaction of these statements. */
export function emOf(db: Db): EntityManager {
  const getEntityManager = entityManagers.get(db);
  if (!getEntityManager) throw new Error('These statements have no entity manager');
  return getEntityManager();
}
