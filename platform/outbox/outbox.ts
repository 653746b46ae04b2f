import { setTimeout as pause } from 'node:timers/promises';
import { sql } from '@mikro-orm/core';
import type { Logger } from 'pino';
import type { Database, Transaction } from '../database/database.ts';
import { createSemaphore } from '../semaphore.ts';
import { OutboxEntity } from './outbox.entity.ts';
import type { OutboxCommand } from './outbox-command.ts';
import type { WorkflowGateway } from './workflow-gateway.ts';

export interface Outbox {
  /** Writes the command in the caller's transaction and dispatches it right after the commit. */
  enqueue(transaction: Transaction, organizationId: string, command: OutboxCommand): void;
  /** Takes commands whose process died before it dispatched them. Returns how many it dispatched. */
  sweep(limit: number): Promise<number>;
  /** Waits until what was enqueued so far is dispatched or left to the sweep. */
  drain(): Promise<void>;
}

export interface OutboxOptions {
  database: Database;
  workflows: Pick<WorkflowGateway, 'dispatch'>;
  logger: Logger;
}

/** The sweep leaves young rows to the process that wrote them. */
const FIRST_SWEEP_AFTER_MS = 10_000;
/** Calls under way from one process: more would only wait for one another at the server. */
const CALLS_AT_ONCE = 50;
/** Commands that wait in one process, of about 1 KiB; beyond it a burst is left to the sweep. */
const MAX_WAITING = 5_000;
const MAX_ATTEMPTS = 200;
const MAX_BACKOFF_MS = 600_000;

export function createOutbox({ database, workflows, logger }: OutboxOptions): Outbox {
  const waiting = new Set<Promise<void>>();
  const calls = createSemaphore(CALLS_AT_ONCE);
  const removeRow = batchedRemoval(database);

  async function dispatchCommitted(
    organizationId: string,
    id: string,
    command: OutboxCommand,
  ): Promise<void> {
    try {
      const release = await calls.acquire();
      await workflows.dispatch(command).finally(release);
      await removeRow(organizationId, id);
    } catch (error) {
      logger.warn({ outboxId: id, organizationId, err: error }, 'outbox dispatch left to the sweep');
    }
  }

  async function dispatchLeased({ id, organizationId, command, attempts }: LeasedRow): Promise<boolean> {
    try {
      const release = await calls.acquire();
      await workflows.dispatch(command).finally(release);
      await removeRow(organizationId, id);
      return true;
    } catch (error) {
      const isDead = attempts >= MAX_ATTEMPTS;
      await database.autocommit((em) =>
        em.nativeUpdate(
          OutboxEntity,
          { id },
          {
            lastError: error instanceof Error ? error.message.slice(0, 500) : String(error),
            deadAt: isDead ? new Date() : null,
          },
        ),
      );
      logger[isDead ? 'error' : 'warn'](
        { outboxId: id, organizationId, attempts, err: error },
        isDead ? 'outbox command given up' : 'outbox command failed',
      );
      return false;
    }
  }

  return {
    enqueue({ em, afterCommit, requestId }, organizationId, given) {
      const command = given.start && requestId ? { ...given, start: { ...given.start, requestId } } : given;
      const row = em.create(OutboxEntity, {
        organizationId,
        command,
        availableAt: new Date(Date.now() + FIRST_SWEEP_AFTER_MS),
      });
      em.persist(row);
      afterCommit(() => {
        if (waiting.size >= MAX_WAITING) return;
        const dispatch = dispatchCommitted(organizationId, row.id, command).finally(() =>
          waiting.delete(dispatch),
        );
        waiting.add(dispatch);
      });
    },

    async sweep(limit) {
      const rows = await leaseDue(database, limit);
      const results = await Promise.all(rows.map(dispatchLeased));
      return results.filter((dispatched) => dispatched).length;
    },

    async drain() {
      await Promise.all(waiting);
    },
  };
}

/** Long enough to gather rows under load, far shorter than the time after which the sweep takes them. */
const GATHER_MS = 50;

/**
 * Removes rows of dispatched commands together, a moment later: a transaction of its own for each would double what
 * the outbox costs. A row that a crash leaves is dispatched once more, which changes nothing.
 */
function batchedRemoval(database: Database): (organizationId: string, id: string) => Promise<void> {
  let batch: { idsOf: Map<string, string[]>; removed: Promise<void> } | undefined;

  async function removeLater(idsOf: Map<string, string[]>): Promise<void> {
    await pause(GATHER_MS);
    batch = undefined;
    for (const [organizationId, ids] of idsOf) {
      await database.transaction({ organizationId }, ({ em }) =>
        em.nativeDelete(OutboxEntity, { id: { $in: ids } }),
      );
    }
  }

  return (organizationId, id) => {
    if (!batch) {
      const idsOf = new Map<string, string[]>();
      batch = { idsOf, removed: removeLater(idsOf) };
    }
    const ids = batch.idsOf.get(organizationId);
    if (ids) ids.push(id);
    else batch.idsOf.set(organizationId, [id]);
    return batch.removed;
  };
}

interface LeasedRow {
  id: string;
  organizationId: string;
  command: OutboxCommand;
  attempts: number;
}

/** Marks due rows as taken (by moving their time) in one statement, so that two sweeps never take the same row. */
async function leaseDue(database: Database, limit: number): Promise<LeasedRow[]> {
  return database.autocommit((em) =>
    em.execute<LeasedRow[]>(
      sql`update outbox set attempts = attempts + 1,
         available_at = now() + least(${FIRST_SWEEP_AFTER_MS} * power(2, least(attempts, 10)), ${MAX_BACKOFF_MS}) * interval '1 millisecond'
       where id in (select id from outbox where available_at <= now() and dead_at is null
                    order by available_at limit ${limit} for update skip locked)
       returning id, org_id as "organizationId", command, attempts`,
    ),
  );
}
