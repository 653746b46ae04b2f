import { expect } from '@jest/globals';
import { sql } from 'kysely';
import type { Transaction } from '../../platform/database/database.ts';
import { eventually } from './eventually.ts';
import { query } from './query.ts';

/** Waits until one statement of another transaction waits for a lock of this one. */
export const untilBlocking = (transaction: Pick<Transaction, 'db'>): Promise<void> =>
  eventually(async () => {
    const waiting = sql`select from pg_locks where not granted and pg_backend_pid() = any (pg_blocking_pids(pid))`;
    expect(await query(transaction, waiting)).toHaveLength(1);
  });
