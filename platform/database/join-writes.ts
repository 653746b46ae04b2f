import type { PoolClient } from 'pg';
import type { Connection } from './typed-connection.ts';

/**
 * Statements that run without waiting for each other leave in one write: a system call costs more than what it sends. The
 * pool pipelines, so PostgreSQL answers them in order.
 */
export function joinWrites(client: PoolClient): Connection {
  const { stream } = client.connection;
  return {
    query(statement, values) {
      stream.cork();
      // Runs once all that is ready to run has run, so after the statements that follow without waiting.
      process.nextTick(() => stream.uncork());
      return client.query(statement, values);
    },
  };
}
