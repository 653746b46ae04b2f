import type { Pool, PoolClient } from 'pg';
import { joinWrites } from './join-writes.ts';

/** How long a transaction that has read all it needs may stay open. Meanwhile its snapshot keeps deleted rows from vacuum. */
const LINGER_MS = 20;

/**
 * Read-only transactions that have read all they need. Their commit changes nothing, and no caller waits for it. It is sent
 * with the next statement of the connection, in one system call, or alone if none follows soon.
 */
export interface OpenReads {
  /** Takes over the transaction of a connection that is about to be released. */
  leave(client: PoolClient): void;
}

export function createOpenReads(pool: Pool): OpenReads {
  const timers = new Map<PoolClient, NodeJS.Timeout>();

  function forget(client: PoolClient): boolean {
    clearTimeout(timers.get(client));
    return timers.delete(client);
  }

  function commit(client: PoolClient): void {
    // On a broken connection the next statement fails, too, and says why.
    if (forget(client))
      joinWrites(client)
        .query('commit')
        .catch(() => undefined);
  }

  // The pool emits this event before the caller gets the connection.
  pool.on('acquire', commit);
  pool.on('remove', forget);
  return {
    leave: (client) => void timers.set(client, setTimeout(commit, LINGER_MS, client)),
  };
}
