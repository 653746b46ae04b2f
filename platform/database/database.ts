import { type EntityName, sql } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import { type EntityManager, MikroORM, type Options } from '@mikro-orm/postgresql';
import type { Pool, QueryConfig } from 'pg';
import { createFairShare, type FairShare, organizationHolder } from '../concurrency/fair-share.ts';
import { AppError } from '../errors.ts';
import { traceQueries } from '../tracing/query-spans.ts';
import { bindParameters } from './bind-parameters.ts';
import { bridge, bridgeBack } from './bridge.ts';
import type { RowReader } from './find-rows.ts';
import { createConnections, type OpenTransaction, type TransactionStart } from './open-transaction.ts';
import { EXPORT_ROLE, PEOPLE_ROLE, STAFF_ROLE } from './policies.ts';
import type { Sql } from './sql.ts';
import type { Db } from './tables.ts';
import { type Connection, typeConnection } from './typed-connection.ts';

/** One PostgreSQL transaction, in which a use-case does all its work. */
export interface Transaction extends OpenTransaction {
  /** The API request it belongs to; undefined in workers. */
  readonly requestId?: string;
  /**
   * Runs `work` after everything else is flushed, so locks on contended rows are held only briefly. If it throws, the
   * transaction rolls back.
   */
  beforeCommit(work: () => Promise<void>): void;
  /** Runs `work` after the commit, never after a rollback. It must not throw. */
  afterCommit(work: () => void): void;
}

/** What {@link Database.read} passes. */
export type Reader = RowReader & Pick<OpenTransaction, 'db'>;

export interface TenantScope {
  organizationId: string;
  requestId?: string;
  /** Every transaction refuses changes: the second line behind the check of operations. Default: false. */
  isReadOnly?: boolean;
  /** The request's open transaction (requests with an Idempotency-Key), which use-cases join; undefined if there is none. */
  transaction?: Transaction;
}

export interface Database {
  readonly orm: MikroORM;
  /**
   * Statements outside a transaction, which each commit by themselves: for workers, and in the API for the SQL functions that
   * run before the organization is known. The API's role sees no rows of organizations here.
   */
  readonly db: Db;
  /**
   * Runs `work` in a transaction that sees only the rows of `scope`'s organization, or in `scope.transaction` if there is
   * one. An `AppError` with `commitsTransaction` is thrown after the commit; every other error rolls back. Do not make
   * other network calls inside.
   */
  transaction<T>(scope: TenantScope, work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /**
   * Runs `work` in a read-only transaction that sees only the rows of `scope`'s organization, or in `scope.transaction` if
   * there is one: for use-cases that only show something. It has no entity manager, which costs more than the statements.
   */
  read<T>(scope: TenantScope, work: (reader: Reader) => Promise<T>): Promise<T>;
  /**
   * Runs `work` in a transaction without an organization: for workers, whose role sees every tenant, and for tables
   * without tenants. Errors as in {@link transaction}.
   */
  systemTransaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /**
   * Runs `work` in a transaction as the people role, which sees users, sessions, factors and memberships of every
   * organization, and no mail. Errors as in {@link transaction}.
   */
  peopleTransaction<T>(work: (transaction: Transaction) => Promise<T>, requestId?: string): Promise<T>;
  /**
   * Runs `work` in a transaction as the staff role, which sees organizations, people, keys and usage of every tenant, and no
   * mail. Errors as in {@link transaction}.
   */
  staffTransaction<T>(
    staff: { requestId: string },
    work: (transaction: Transaction) => Promise<T>,
  ): Promise<T>;
  /**
   * Runs `work` in a read-only transaction as the export role, which row-level security limits to one organization and
   * which may not read secrets: for workers, whose own role sees every tenant.
   */
  readAsTenant<T>(organizationId: string, work: (db: Db) => Promise<T>): Promise<T>;
  /**
   * Runs one statement outside a transaction and without an organization: for workers, and in the API for the SQL
   * functions that run before the organization is known.
   */
  query<Row>(query: Sql): Promise<Row[]>;
  /**
   * Runs `work` without a transaction: each of its statements commits by itself, and nothing is flushed. For workers
   * only: the API's role sees no rows outside {@link transaction}.
   */
  autocommit<T>(work: (em: EntityManager) => Promise<T>): Promise<T>;
  /** This process's pool: connections in use and idle, and callers waiting for one or for their share. */
  poolUsage(): { used: number; idle: number; waiting: number };
  /** @throws Error if PostgreSQL does not respond. */
  ping(): Promise<void>;
  /** Waits for the work in progress, then closes all connections. */
  close(): Promise<void>;
}

export interface DatabaseOptions {
  url: string;
  poolSize: number;
  entities: EntityName[];
  debug?: boolean;
}

/** Longer than the interval of heartbeats, so that an idle process does not connect for each of them. */
const IDLE_TIMEOUT_MS = 60_000;

export function databaseOptions({ url, poolSize, entities, debug }: DatabaseOptions): Options {
  return {
    clientUrl: url,
    entities,
    pool: { min: 0, max: poolSize, idleTimeoutMillis: IDLE_TIMEOUT_MS },
    extensions: [Migrator],
    migrations: { path: new URL('../../migrations', import.meta.url).pathname, snapshot: false },
    forceUtcTimezone: true,
    ignoreUndefinedInQuery: false,
    allowGlobalContext: false,
    debug: debug ?? false,
    discovery: { warnWhenNoEntities: false },
    // Keepalive ends connections whose other side is gone without a word.
    driverOptions: { application_name: 'agent-email', keepAlive: true, keepAliveInitialDelayMillis: 10_000 },
  };
}

/** Flushes at the end, as a separate transaction would, so the returned rows have their generated columns. */
async function join<T>(transaction: Transaction, work: (transaction: Transaction) => Promise<T>): Promise<T> {
  const value = await work(transaction);
  await transaction.flush();
  return value;
}

/** Flushes, then runs the hooks in order. */
export async function runBeforeCommit(
  transaction: OpenTransaction,
  hooks: readonly (() => Promise<void>)[],
): Promise<void> {
  if (hooks.length === 0) return;
  await transaction.flush();
  for (const hook of hooks) await hook();
}

/** A smaller pool has no reserve: its connections are needed. */
const MIN_POOL_WITH_RESERVE = 4;
/** Of a pool: left to organizations within their share, and to sign-in, staff and health checks. */
const RESERVED_CONNECTIONS = 0.2;

/** The transactions of organizations. Those without an organization are not limited. */
function createConnectionShares(poolSize: number): FairShare {
  const reserve = poolSize < MIN_POOL_WITH_RESERVE ? 0 : Math.ceil(poolSize * RESERVED_CONNECTIONS);
  return createFairShare({ name: 'database connections', capacity: poolSize - reserve, reserve });
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
        traceQueries(created);
      },
    },
  });
  const connections = createConnections(orm, bindParameters(orm));
  const inProgress = new Set<Promise<unknown>>();
  const shares = createConnectionShares(options.poolSize);

  /** A connection for a transaction of one organization. */
  async function inShare<T>(organizationId: string, work: () => Promise<T>): Promise<T> {
    const release = await shares.acquire({ holders: [organizationHolder(organizationId)] });
    return work().finally(release);
  }

  /** The driver hangs if it is closed while a connection is being acquired: `close` waits for tracked work first. */
  function track<T>(work: Promise<T>): Promise<T> {
    inProgress.add(work);
    const forget = () => inProgress.delete(work);
    work.then(forget, forget);
    return work;
  }

  function forkEntityManager(): EntityManager {
    const em = orm.em.fork();
    bridgeBack(em, db);
    return em;
  }

  const db = typeConnection({
    query: (statement: QueryConfig) => track(connections.pool.query(statement)),
  } as Connection);
  bridge(db, forkEntityManager);

  async function run<T>(
    start: TransactionStart,
    work: (transaction: Transaction) => Promise<T>,
    requestId?: string,
  ): Promise<T> {
    const afterCommitHooks: (() => void)[] = [];
    const beforeCommitHooks: (() => Promise<void>)[] = [];
    let refusal: AppError | undefined;
    const value = await connections.transaction(start, async (open) => {
      const transaction = Object.assign(open, {
        requestId,
        beforeCommit: (hook: () => Promise<void>) => beforeCommitHooks.push(hook),
        afterCommit: (hook: () => void) => afterCommitHooks.push(hook),
      });
      try {
        const result = await work(transaction);
        await runBeforeCommit(transaction, beforeCommitHooks);
        return result;
      } catch (error) {
        if (!(error instanceof AppError && error.commitsTransaction)) throw error;
        refusal = error;
      }
    });
    for (const hook of afterCommitHooks) hook();
    if (refusal) throw refusal;
    return value as T;
  }

  return {
    orm,
    db,
    transaction(scope, work) {
      const { transaction, organizationId, isReadOnly = false, requestId } = scope;
      return transaction
        ? join(transaction, work)
        : track(inShare(organizationId, () => run({ organizationId, isReadOnly }, work, requestId)));
    },
    read({ transaction, organizationId }, work) {
      return transaction
        ? join(transaction, work)
        : track(
            inShare(organizationId, () =>
              connections.transaction({ organizationId, isReadOnly: true }, work),
            ),
          );
    },
    peopleTransaction: (work, requestId) => track(run({ role: PEOPLE_ROLE }, work, requestId)),
    staffTransaction: ({ requestId }, work) => track(run({ role: STAFF_ROLE }, work, requestId)),
    readAsTenant: (organizationId, work) =>
      track(
        inShare(organizationId, () =>
          connections.transaction({ organizationId, role: EXPORT_ROLE, isReadOnly: true }, ({ db: own }) =>
            work(own),
          ),
        ),
      ),
    systemTransaction: (work) => track(run({}, work)),
    query: (query) => track(connections.query(query)),
    autocommit(work) {
      return track(work(forkEntityManager()));
    },
    poolUsage() {
      const { totalCount = 0, idleCount = 0, waitingCount = 0 } = pool ?? {};
      return {
        used: totalCount - idleCount,
        idle: idleCount,
        waiting: waitingCount + shares.usage().waiting,
      };
    },
    async ping() {
      await track(orm.em.fork().execute(sql`select 1`));
    },
    async close() {
      while (inProgress.size > 0) await Promise.allSettled(inProgress);
      await orm.close(true);
    },
  };
}
