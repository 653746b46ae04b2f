import pg from 'pg';
import {
  createFairShare,
  type FairShare,
  type Holder,
  organizationHolder,
} from '../concurrency/fair-share.ts';
import { AppError } from '../errors.ts';
import { createOpenReads } from './open-reads.ts';
import { type OpenTransaction, runTransaction, type TransactionStart } from './open-transaction.ts';
import { EXPORT_ROLE, PEOPLE_ROLE, STAFF_ROLE } from './policies.ts';
import { sendStatement } from './prepared-query.ts';
import type { Db } from './tables.ts';
import { runStatement, TYPES, typeConnection } from './typed-connection.ts';

/** One PostgreSQL transaction, in which a use-case does all its work. */
export interface Transaction extends OpenTransaction {
  /** The API request it belongs to; undefined in workers. */
  readonly requestId?: string;
  /**
   * Runs `work` after everything else is written, so locks on contended rows are held only briefly. If it throws, the
   * transaction rolls back.
   */
  beforeCommit(work: () => Promise<void>): void;
  /** Runs `work` after the commit, never after a rollback. It must not throw. */
  afterCommit(work: () => void): void;
}

/** What {@link Database.read} passes. */
export type Reader = Pick<OpenTransaction, 'db'>;

/** What a request takes for granted about its credential. Nothing may leave the service before it is confirmed. */
export interface Presumption {
  readonly isConfirmed: boolean;
  /**
   * Asks the database, once however often it is called.
   *
   * @param db by default outside a transaction.
   * @throws Error if the presumption is wrong.
   */
  confirm(db?: Db): Promise<void>;
}

export interface TenantScope {
  organizationId: string;
  requestId?: string;
  /** Every transaction refuses changes: the second line behind the check of operations. Default: false. */
  isReadOnly?: boolean;
  /** The request's open transaction (requests with an Idempotency-Key), which use-cases join; undefined if there is none. */
  transaction?: Transaction;
  /** Confirmed by the first transaction that sees the organization's rows. Undefined if the credential has been checked. */
  presumption?: Presumption;
}

export interface Database {
  /**
   * Statements outside a transaction, which each commit by themselves and wait for no share: for workers, and in the API for
   * what the service itself does. The API's role sees no rows of organizations here.
   */
  readonly db: Db;
  /**
   * Runs statements as those of {@link db}, in the share of a holder: in the API, for the SQL functions that run before the
   * organization is known.
   */
  inShareOf<T>(holder: Holder, work: (db: Db) => Promise<T>): Promise<T>;
  /**
   * Runs `work` in a transaction that sees only the rows of `scope`'s organization, or in `scope.transaction` if there is
   * one. An `AppError` with `commitsTransaction` is thrown after the commit; every other error rolls back. Do not make
   * other network calls inside.
   */
  transaction<T>(scope: TenantScope, work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /**
   * Runs `work` in a read-only transaction that sees only the rows of `scope`'s organization, all of one moment, or in
   * `scope.transaction` if there is one: for use-cases that only show something. `scope.presumption` is confirmed by a
   * statement of the same transaction, which costs no round trip.
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
}

/** Longer than the interval of heartbeats, so that an idle process does not connect for each of them. */
const IDLE_TIMEOUT_MS = 60_000;

/** Writes what the transaction has collected, then runs the hooks in order. */
export async function runBeforeCommit(
  transaction: OpenTransaction,
  hooks: readonly (() => Promise<void>)[],
): Promise<void> {
  if (hooks.length === 0) return;
  await transaction.flush();
  for (const hook of hooks) await hook();
}

/** The statement that confirms leaves in one write with the first one of `work`. */
const confirming =
  <T>(presumption: Presumption, work: (reader: Reader) => Promise<T>) =>
  async (reader: Reader): Promise<T> => {
    const confirmed = presumption.confirm(reader.db);
    // Awaited below, also if `work` fails first.
    confirmed.catch(() => undefined);
    try {
      return await work(reader);
    } finally {
      await confirmed;
    }
  };

/** A smaller pool has no reserve: its connections are needed. */
const MIN_POOL_WITH_RESERVE = 4;
/** Of a pool: left to holders within their share, and to what the service itself does. */
const RESERVED_CONNECTIONS = 0.2;
/** All that is done as the people role, which is short. Beside organizations they have a share of their own. */
const PEOPLE: Holder = { kind: 'process', id: 'people' };
const STAFF: Holder = { kind: 'process', id: 'staff' };

/** What the service itself does waits for no share. */
function createConnectionShares(poolSize: number): FairShare {
  const reserve = poolSize < MIN_POOL_WITH_RESERVE ? 0 : Math.ceil(poolSize * RESERVED_CONNECTIONS);
  return createFairShare({ name: 'database connections', capacity: poolSize - reserve, reserve });
}

/** Connects when the first statement runs. */
export function createDatabase({ url, poolSize }: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: poolSize,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    application_name: 'agent-email',
    types: TYPES,
    // A statement need not wait for the answer of the one before, see `beginWithFirstStatement`.
    pipeline: true,
    // Ends connections whose other side is gone without a word.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  });
  // A lost connection fails the statement that runs on it; without one, the pool replaces it. Unheard, it would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined));
  pool.on('error', () => undefined);
  const connections = { pool, openReads: createOpenReads(pool) };
  const inProgress = new Set<Promise<unknown>>();
  const shares = createConnectionShares(poolSize);

  async function inShare<T>(holder: Holder, work: () => Promise<T>): Promise<T> {
    const release = await shares.acquire({ holders: [holder] });
    return work().finally(release);
  }

  /** The pool hangs if it is closed while a connection is being acquired: `close` waits for tracked work first. */
  function track<T>(work: Promise<T>): Promise<T> {
    inProgress.add(work);
    const forget = () => inProgress.delete(work);
    work.then(forget, forget);
    return work;
  }

  async function run<T>(
    start: TransactionStart,
    work: (transaction: Transaction) => Promise<T>,
    requestId?: string,
  ): Promise<T> {
    const afterCommitHooks: (() => void)[] = [];
    const beforeCommitHooks: (() => Promise<void>)[] = [];
    let refusal: AppError | undefined;
    const value = await runTransaction(connections, start, async (open) => {
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

  const readOnly = <T>(
    start: TransactionStart & { organizationId: string },
    work: (reader: Reader) => Promise<T>,
  ) =>
    track(
      inShare(organizationHolder(start.organizationId), () =>
        runTransaction(connections, { ...start, isReadOnly: true }, work),
      ),
    );
  const outside = typeConnection({
    query: (statement, values) => track(sendStatement(pool, statement, values)),
  });

  return {
    db: outside,
    inShareOf: (holder, work) => track(inShare(holder, () => work(outside))),
    async transaction(scope, work) {
      const { transaction, organizationId, isReadOnly = false, requestId, presumption } = scope;
      if (transaction) return work(transaction);
      if (presumption && !presumption.isConfirmed) await presumption.confirm();
      return track(
        inShare(organizationHolder(organizationId), () =>
          run({ organizationId, isReadOnly }, work, requestId),
        ),
      );
    },
    read: ({ transaction, organizationId, presumption }, work) =>
      transaction
        ? work(transaction)
        : readOnly(
            { organizationId },
            presumption && !presumption.isConfirmed ? confirming(presumption, work) : work,
          ),
    peopleTransaction: (work, requestId) =>
      track(inShare(PEOPLE, () => run({ role: PEOPLE_ROLE }, work, requestId))),
    staffTransaction: ({ requestId }, work) =>
      track(inShare(STAFF, () => run({ role: STAFF_ROLE }, work, requestId))),
    readAsTenant: (organizationId, work) =>
      readOnly({ organizationId, role: EXPORT_ROLE }, ({ db }) => work(db)),
    systemTransaction: (work) => track(run({}, work)),
    poolUsage() {
      const { totalCount, idleCount, waitingCount } = pool;
      return {
        used: totalCount - idleCount,
        idle: idleCount,
        waiting: waitingCount + shares.usage().waiting,
      };
    },
    async ping() {
      await track(runStatement(pool, 'select 1'));
    },
    async close() {
      while (inProgress.size > 0) await Promise.allSettled(inProgress);
      await pool.end();
    },
  };
}
