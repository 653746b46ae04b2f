import type { PoolClient } from 'pg';
import { sendStatement } from './prepared-query.ts';
import type { Connection } from './typed-connection.ts';

/** A connection that knows whether a statement failed on it, even if the caller ignored the error. */
export interface WatchedConnection extends Connection {
  hasFailed: boolean;
}

/**
 * Statements that run without waiting for each other leave in one write: a system call costs more than what it sends. The
 * pool pipelines, so PostgreSQL answers them in order.
 */
export function joinWrites(client: PoolClient): WatchedConnection {
  const { stream } = client.connection;
  const watched: WatchedConnection = {
    hasFailed: false,
    query(statement, values) {
      stream.cork();
      // Runs once all that is ready to run has run, so after the statements that follow without waiting.
      process.nextTick(() => stream.uncork());
      const result = sendStatement(client, statement, values);
      result.catch(() => {
        watched.hasFailed = true;
      });
      return result;
    },
  };
  return watched;
}
