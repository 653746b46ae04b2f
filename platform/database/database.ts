import { type EntityName, UnderscoreNamingStrategy } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import { type EntityManager, MikroORM, type Options } from '@mikro-orm/postgresql';
import type { Pool } from 'pg';
import { AppError } from '../errors.ts';
import { EXPORT_ROLE, ORGANIZATION_VARIABLE } from './policies.ts';
import { quoteText } from './quote-text.ts';

/** What a use-case works in: one PostgreSQL transaction of one organization. */
export interface Transaction {
  readonly em: EntityManager;
  /** The request it belongs to; empty for what a lifecycle does by itself. */
  readonly requestId?: string;
  /**
   * Runs last, when everything else is written: for what locks rows that many wait for. What it throws takes the whole
   * transaction back.
   */
  beforeCommit(work: () => Promise<void>): void;
  /** Runs once the transaction has committed; never when it rolled back. Must not throw. */
  afterCommit(work: () => void): void;
}

export interface TenantScope {
  organizationId: string;
  requestId?: string;
  /** The request's open transaction, where it has one (idempotent requests); use-cases then join it. */
  transaction?: Transaction;
}

export interface Database {
  readonly orm: MikroORM;
  /**
   * Runs `work` in a transaction that sees the rows of `scope`'s organization. Joins `scope.transaction` where there
   * is one. An `AppError` with `commits` is thrown after the commit; every other error rolls back.
   * No network call other than PostgreSQL's belongs inside.
   */
  transaction<T>(scope: TenantScope, work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /** The same without an organization: for workers, whose role sees all tenants, and for tables that have none. */
  systemTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /**
   * Reads rows of one organization under row-level security, although the workers' own role sees every tenant's. What
   * nobody ought to read has no grant; nothing can be written.
   */
  readAsTenant<T>(organizationId: string, work: (em: EntityManager) => Promise<T>): Promise<T>;
  /** One statement without transaction and tenant: for the functions that run before a tenant is known. */
  statement<Row>(sql: string, values?: unknown[]): Promise<Row[]>;
  /**
   * Statements of a worker that each stand for themselves: no BEGIN and COMMIT around them, no flush behind them. Not
   * for the API, whose statements see nothing without {@link transaction}.
   */
  autocommit<T>(work: (em: EntityManager) => Promise<T>): Promise<T>;
  /** Of this process: connections in use and idle, and callers that wait for one. */
  connections(): { used: number; idle: number; waiting: number };
  /** @throws when PostgreSQL does not answer. */
  ping(): Promise<void>;
  /** Lets what is under way end first. */
  close(): Promise<void>;
}

/** A reference mapped to its key is named after the property: `inboxId` is `inbox_id`. */
class ColumnNames extends UnderscoreNamingStrategy {
  override joinKeyColumnName(propertyName: string): string {
    return this.propertyToColumnName(propertyName);
  }
}

export interface DatabaseOptions {
  url: string;
  poolSize: number;
  entities: EntityName[];
  debug?: boolean;
}

export function databaseOptions({ url, poolSize, entities, debug }: DatabaseOptions): Options {
  return {
    clientUrl: url,
    entities,
    pool: { min: 0, max: poolSize },
    extensions: [Migrator],
    migrations: { path: new URL('../../migrations', import.meta.url).pathname, snapshot: false },
    namingStrategy: ColumnNames,
    forceUtcTimezone: true,
    ignoreUndefinedInQuery: false,
    allowGlobalContext: false,
    debug: debug ?? false,
    discovery: { warnWhenNoEntities: false },
    driverOptions: { application_name: 'agent-email' },
  };
}

/** Flushed like a transaction of its own, so that a use-case returns rows with their generated columns either way. */
async function join<T>(transaction: Transaction, work: (transaction: Transaction) => Promise<T>): Promise<T> {
  const value = await work(transaction);
  await transaction.em.flush();
  return value;
}

/** What is written so far goes to the database first. */
export async function runLast(em: EntityManager, hooks: readonly (() => Promise<void>)[]): Promise<void> {
  if (hooks.length === 0) return;
  await em.flush();
  for (const hook of hooks) await hook();
}

export async function createDatabase(options: DatabaseOptions): Promise<Database> {
  const base = databaseOptions(options);
  let pool: Pool | undefined;
  const orm = await MikroORM.init({
    ...base,
    driverOptions: {
      ...base.driverOptions,
      onPoolCreated(created: Pool) {
        pool = created;
      },
    },
  });
  Object.assign(orm.em.getPlatform(), { escapeLiteral: quoteText });
  const underWay = new Set<Promise<unknown>>();

  /** The driver loses a connection that is being acquired when it closes, and then waits for it for ever. */
  function track<T>(work: Promise<T>): Promise<T> {
    underWay.add(work);
    const forget = () => underWay.delete(work);
    work.then(forget, forget);
    return work;
  }

  async function run<T>(
    fork: EntityManager,
    work: (transaction: Transaction) => Promise<T>,
    requestId?: string,
  ): Promise<T> {
    const committed: (() => void)[] = [];
    const last: (() => Promise<void>)[] = [];
    const outcome = await fork.transactional(async (em): Promise<{ value: T } | { refusal: AppError }> => {
      try {
        const value = await work({
          em,
          requestId,
          beforeCommit: (hook) => last.push(hook),
          afterCommit: (hook) => committed.push(hook),
        });
        await runLast(em, last);
        return { value };
      } catch (error) {
        if (error instanceof AppError && error.commitsTransaction) return { refusal: error };
        throw error;
      }
    });
    for (const hook of committed) hook();
    if ('refusal' in outcome) throw outcome.refusal;
    return outcome.value;
  }

  return {
    orm,
    transaction(scope, work) {
      if (scope.transaction) return join(scope.transaction, work);
      const variables = { [ORGANIZATION_VARIABLE]: scope.organizationId };
      return track(run(orm.em.fork({ session: { variables } }), work, scope.requestId));
    },
    readAsTenant(organizationId, work) {
      const session = { role: EXPORT_ROLE, variables: { [ORGANIZATION_VARIABLE]: organizationId } };
      return track(orm.em.fork({ session }).transactional((em) => work(em), { readOnly: true }));
    },
    systemTransaction: (work) => track(run(orm.em.fork(), work)),
    statement: <Row>(sql: string, values: unknown[] = []) => track(orm.em.fork().execute<Row[]>(sql, values)),
    autocommit: (work) => track(work(orm.em.fork())),
    connections() {
      const { totalCount = 0, idleCount = 0, waitingCount = 0 } = pool ?? {};
      return { used: totalCount - idleCount, idle: idleCount, waiting: waitingCount };
    },
    async ping() {
      await track(orm.em.fork().execute('select 1'));
    },
    async close() {
      while (underWay.size > 0) await Promise.allSettled(underWay);
      await orm.close(true);
    },
  };
}
