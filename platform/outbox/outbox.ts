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
  /** Dispatches commands that their own process did not dispatch. Returns the number of dispatched commands. */
  sweep(limit: number): Promise<number>;
  /** Resolves once every command enqueued so far is dispatched or left to the sweep. */
  drain(): Promise<void>;
}

export interface OutboxOptions {
  database: Database;
  workflows: Pick<WorkflowGateway, 'dispatch'>;
  logger: Logger;
}

/** The sweep leaves newer rows to the process that wrote them. */
const FIRST_SWEEP_AFTER_MS = 10_000;
/** Per process: more calls would only queue at the Temporal server. */
const MAX_CONCURRENT_CALLS = 50;
/** Maximum commands (of about 1 KiB) that wait in one process; further ones are left to the sweep. */
const MAX_WAITING_COMMANDS = 5_000;
const MAX_ATTEMPTS = 200;
const MAX_BACKOFF_MS = 600_000;

export function createOutbox({ database, workflows, logger }: OutboxOptions): Outbox {
  const waiting = new Set<Promise<void>>();
  const calls = createSemaphore(MAX_CONCURRENT_CALLS);
  const deleteRow = createBatchedDelete(database);

  async function dispatchCommitted(
    organizationId: string,
    id: string,
    command: OutboxCommand,
  ): Promise<void> {
    try {
      const release = await calls.acquire();
      await workflows.dispatch(command).finally(release);
      await deleteRow(organizationId, id);
    } catch (error) {
      logger.warn({ outboxId: id, organizationId, err: error }, 'outbox dispatch left to the sweep');
    }
  }

  async function dispatchLeased({ id, organizationId, command, attempts }: LeasedRow): Promise<boolean> {
    try {
      const release = await calls.acquire();
      await workflows.dispatch(command).finally(release);
      await deleteRow(organizationId, id);
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
        isDead ? 'outbox command is dead' : 'outbox command failed',
      );
      return false;
    }
  }

  return {
    enqueue({ em, afterCommit, requestId }, organizationId, command) {
      const traced =
        command.start && requestId ? { ...command, start: { ...command.start, requestId } } : command;
      const row = em.create(OutboxEntity, {
        organizationId,
        command: traced,
        availableAt: new Date(Date.now() + FIRST_SWEEP_AFTER_MS),
      });
      em.persist(row);
      afterCommit(() => {
        if (waiting.size >= MAX_WAITING_COMMANDS) return;
        const dispatch = dispatchCommitted(organizationId, row.id, traced).finally(() =>
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

/** Long enough to collect rows under load, far shorter than `FIRST_SWEEP_AFTER_MS`. */
const BATCH_DELAY_MS = 50;

/**
 * Deletes rows of dispatched commands in batches: a transaction for each row would double the cost of the outbox. A row
 * that a crash leaves behind is dispatched again, which has no effect.
 */
function createBatchedDelete(database: Database): (organizationId: string, id: string) => Promise<void> {
  let batch: { idsByOrganization: Map<string, string[]>; removed: Promise<void> } | undefined;

  async function removeLater(idsByOrganization: Map<string, string[]>): Promise<void> {
    await pause(BATCH_DELAY_MS);
    batch = undefined;
    for (const [organizationId, ids] of idsByOrganization) {
      await database.transaction({ organizationId }, ({ em }) =>
        em.nativeDelete(OutboxEntity, { id: { $in: ids } }),
      );
    }
  }

  return (organizationId, id) => {
    if (!batch) {
      const idsByOrganization = new Map<string, string[]>();
      batch = { idsByOrganization, removed: removeLater(idsByOrganization) };
    }
    const ids = batch.idsByOrganization.get(organizationId);
    if (ids) ids.push(id);
    else batch.idsByOrganization.set(organizationId, [id]);
    return batch.removed;
  };
}

interface LeasedRow {
  id: string;
  organizationId: string;
  command: OutboxCommand;
  attempts: number;
}

/** Leases due rows by advancing `available_at` in one statement, so concurrent sweeps never take the same row. */
async function leaseDue(database: Database, limit: number): Promise<LeasedRow[]> {
  return database.autocommit((em) =>
    em.execute<LeasedRow[]>(
      sql`update outbox set attempts = attempts + 1,
         available_at = now()
           + least(${FIRST_SWEEP_AFTER_MS} * power(2, least(attempts, 10)), ${MAX_BACKOFF_MS}) * interval '1 millisecond'
       where id in (select id from outbox where available_at <= now() and dead_at is null
                    order by available_at limit ${limit} for update skip locked)
       returning id, org_id as "organizationId", command, attempts`,
    ),
  );
}
