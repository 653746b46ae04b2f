import pg, { type Pool } from 'pg';
import { joinWrites } from './join-writes.ts';
import type { OpenReads } from './open-reads.ts';
import { ORGANIZATION_VARIABLE } from './policies.ts';
import type { Db } from './tables.ts';
import { type Connection, runStatement, typeConnection } from './typed-connection.ts';

/** An open PostgreSQL transaction. */
export interface OpenTransaction {
  /** Its statements. */
  readonly db: Db;
  /** Collects a write until the savepoint ends or the transaction commits; it never runs after a rollback. */
  writeLater(write: () => Promise<void>): void;
  /** Writes what {@link writeLater} has collected so far. */
  flush(): Promise<void>;
  /** Runs `work` in a savepoint. If it throws, its changes are undone. */
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

function open(connection: Connection, depth = 1): OpenTransaction {
  const collected: (() => Promise<void>)[] = [];
  async function flush(): Promise<void> {
    for (const write of collected.splice(0)) await write();
  }
  return {
    db: typeConnection(connection),
    writeLater: (write) => void collected.push(write),
    flush,
    async savepoint(work) {
      await flush();
      const name = `savepoint_${depth}`;
      await runStatement(connection, `savepoint ${name}`);
      try {
        const inner = open(connection, depth + 1);
        const value = await work(inner);
        await inner.flush();
        await runStatement(connection, `release savepoint ${name}`);
        return value;
      } catch (error) {
        // On a broken connection every later statement fails, too: the first error says what happened.
        await runStatement(connection, `rollback to savepoint ${name}`).catch(() => undefined);
        throw error;
      }
    },
  };
}

/** The connections of a database. */
export interface Connections {
  pool: Pool;
  openReads: OpenReads;
}

/** Commits after `work`. If `work` throws, rolls back. */
export async function runTransaction<T>(
  { pool, openReads }: Connections,
  start: TransactionStart,
  work: (open: OpenTransaction) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  const connection = joinWrites(client);
  // The first statements leave with it. If it fails, they fail, too.
  const begun = runStatement(connection, toBegin(start));
  begun.catch(() => undefined);
  try {
    const transaction = open(connection);
    const value = await work(transaction);
    await transaction.flush();
    await begun;
    if (start.isReadOnly && !connection.hasFailed) {
      openReads.leave(client);
      client.release();
      return value;
    }
    const { command } = await runStatement(connection, 'commit');
    // PostgreSQL answers so, without an error, if an earlier statement failed and its error was swallowed.
    if (command === 'ROLLBACK')
      throw new Error('The transaction was rolled back: one of its statements failed.');
    client.release();
    return value;
  } catch (error) {
    // On a broken connection nothing is left to roll back: the first error says what happened.
    await runStatement(connection, 'rollback').then(
      () => client.release(),
      () => client.release(true),
    );
    await begun;
    throw error;
  }
}

/** All in one round trip. */
function toBegin({ organizationId, role, isReadOnly = false }: TransactionStart): string {
  // All statements that only read see one moment: a message never has the status of before and the recipients of after.
  const statements = [isReadOnly ? 'begin isolation level repeatable read, read only' : 'begin'];
  if (role !== undefined) statements.push(`set local role ${role}`);
  if (organizationId !== undefined)
    statements.push(
      `select set_config('${ORGANIZATION_VARIABLE}', ${pg.escapeLiteral(organizationId)}, true)`,
    );
  return statements.join('; ');
}
