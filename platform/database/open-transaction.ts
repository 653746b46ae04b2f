import type { EntityManager, MikroORM } from '@mikro-orm/postgresql';
import type { Pool, QueryConfig } from 'pg';
import type { BoundStatement } from './bind-parameters.ts';
import { bridge, bridgeBack } from './bridge.ts';
import type { RowReader } from './find-rows.ts';
import { ORGANIZATION_VARIABLE } from './policies.ts';
import { nameOfPrepared } from './prepared.ts';
import { quoteText } from './quote-text.ts';
import { redactDatabaseError } from './redact-database-error.ts';
import type { Sql } from './sql.ts';
import type { Db } from './tables.ts';
import { type Connection, typeConnection } from './typed-connection.ts';

/** An open PostgreSQL transaction. Its rows are read and written without the ORM, unless something uses `em`. */
export interface OpenTransaction extends RowReader {
  /** Its statements. */
  readonly db: Db;
  /** Works in this transaction. Made at its first use, because making and flushing it costs more than most statements. */
  readonly em: EntityManager;
  /** Writes the changes of entities so far, and what {@link writeLater} has collected. */
  flush(): Promise<void>;
  /** Collects a write until the savepoint ends or the transaction commits; it never runs after a rollback. */
  writeLater(write: () => Promise<void>): void;
  /** Runs `work` in a savepoint with an entity manager of its own, which is flushed. If it throws, its changes are undone. */
  savepoint<T>(work: (inner: OpenTransaction) => Promise<T>): Promise<T>;
}

/** What a transaction may see. */
export interface TransactionStart {
  /** Row-level security shows only this organization's rows. */
  organizationId?: string;
  /** PostgreSQL role; by default that of the connection. */
  role?: string;
  isReadOnly?: boolean;
}

/** Runs statements on the connections of the ORM's pool. */
export interface Connections {
  /** Commits after `work`, with the changes of entities. If `work` throws, rolls back. */
  transaction<T>(start: TransactionStart, work: (open: OpenTransaction) => Promise<T>): Promise<T>;
  /** Runs each statement on any connection of the pool: it commits by itself. */
  readonly pool: Connection;
  /** Runs one statement, which commits by itself. */
  query<Row>(query: Sql): Promise<Row[]>;
}

export function createConnections(orm: MikroORM, bind: (query: Sql) => BoundStatement): Connections {
  const driver = orm.driver;
  const getPool = (): Promise<Pool> => driver.getConnection().getNativeClient();
  const metadata = orm.getMetadata();

  async function execute<Rows>(connection: Connection, query: Sql): Promise<Rows> {
    const { statement, values } = bind(query);
    try {
      const name = nameOfPrepared(statement);
      return (await connection.query({ text: statement, values, ...(name ? { name } : {}) })).rows as Rows;
    } catch (error) {
      throw driver.convertException(redactDatabaseError(error) as Error);
    }
  }

  function open(connection: Connection, depth = 1): OpenTransaction {
    let em: EntityManager | undefined;
    const collected: (() => Promise<void>)[] = [];
    const flushEntities = async () => em?.flush();
    async function flush(): Promise<void> {
      await flushEntities();
      for (const write of collected.splice(0)) await write();
    }
    const db = typeConnection(connection, flushEntities);
    const transaction: OpenTransaction = {
      db,
      execute: (query) => execute(connection, query),
      getMetadata: () => metadata,
      flush,
      writeLater: (write) => void collected.push(write),
      get em() {
        if (!em) {
          em = orm.em.fork();
          em.setTransactionContext(createContext(connection));
          bridgeBack(em, db);
        }
        return em;
      },
      async savepoint(work) {
        await flush();
        const name = `savepoint_${depth}`;
        await connection.query(`savepoint ${name}`);
        try {
          const inner = open(connection, depth + 1);
          const value = await work(inner);
          await inner.flush();
          await connection.query(`release savepoint ${name}`);
          return value;
        } catch (error) {
          // On a broken connection every later statement fails, too: the first error says what happened.
          await connection.query(`rollback to savepoint ${name}`).catch(() => undefined);
          throw error;
        }
      },
    };
    bridge(db, () => transaction.em);
    return transaction;
  }

  return {
    async transaction(start, work) {
      const connection = await (await getPool()).connect();
      try {
        await connection.query(toBegin(start));
        const transaction = open(connection);
        const value = await work(transaction);
        await transaction.flush();
        const { command } = await connection.query('commit');
        // PostgreSQL answers so, without an error, if an earlier statement failed and its error was swallowed.
        if (command === 'ROLLBACK')
          throw new Error('The transaction was rolled back: one of its statements failed.');
        connection.release();
        return value;
      } catch (error) {
        // On a broken connection nothing is left to roll back: the first error says what happened.
        await connection.query('rollback').then(
          () => connection.release(),
          () => connection.release(true),
        );
        throw error;
      }
    },
    query: async <Row>(query: Sql) => execute<Row[]>(await getPool(), query),
    pool: { query: async (statement: QueryConfig) => (await getPool()).query(statement) } as Connection,
  };
}

/** All in one round trip. */
function toBegin({ organizationId, role, isReadOnly = false }: TransactionStart): string {
  const statements = [isReadOnly ? 'begin read only' : 'begin'];
  if (role !== undefined) statements.push(`set local role ${role}`);
  if (organizationId !== undefined)
    statements.push(`select set_config('${ORGANIZATION_VARIABLE}', ${quoteText(organizationId)}, true)`);
  return statements.join('; ');
}

type Context = NonNullable<Parameters<EntityManager['setTransactionContext']>[0]>;

/** What the ORM uses of a transaction: statements with their values (`bindParameters`), and the number of affected rows. */
function createContext(connection: Connection): Context {
  return {
    async executeQuery({ sql, parameters }: { sql: string; parameters: unknown[] }) {
      const { command, rowCount, rows } = await connection.query(sql, parameters);
      return { rows, numAffectedRows: command === 'SELECT' ? undefined : BigInt(rowCount ?? 0) };
    },
  } as unknown as Context;
}
