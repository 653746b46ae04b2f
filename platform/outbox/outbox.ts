import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Database, Transaction } from '../database/database.ts';
import type { SearchAttributeName } from '../temporal.ts';
import { OutboxEntity } from './outbox.entity.ts';
import type { WorkflowGateway } from './workflow-gateway.ts';

export interface StartCommand {
  workflowType: string;
  workflowId: string;
  taskQueue: string;
  /** Ids only: histories are readable by operators. */
  input: object;
  searchAttributes: Partial<Record<SearchAttributeName, string>>;
  /** One line for the Temporal UI. Ids only. */
  summary: string;
  /** Runs of one key share the queue with those of others, each key its part; 64 bytes at most. Empty: one for all. */
  fairnessKey?: string;
  /** The API request that led to it; in the run's memo. Empty for what a lifecycle starts. */
  requestId?: string;
}

export interface SignalCommand {
  workflowId: string;
  signalName: string;
  args: unknown[];
}

/** `signal` with `start` is signal-with-start: the run is made where it does not exist yet. */
export interface OutboxCommand {
  start?: StartCommand;
  signal?: SignalCommand;
}

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
/** Dispatches in flight in one process; beyond it a burst is left to the sweep instead of filling the memory. */
const MAX_IN_FLIGHT = 500;
const MAX_ATTEMPTS = 200;
const MAX_BACKOFF_MS = 600_000;

export function createOutbox({ database, workflows, logger }: OutboxOptions): Outbox {
  const inFlight = new Set<Promise<void>>();
  const removeRow = batchedRemoval(database);

  async function dispatchCommitted(
    organizationId: string,
    id: string,
    command: OutboxCommand,
  ): Promise<void> {
    try {
      await workflows.dispatch(command);
      await removeRow(organizationId, id);
    } catch (error) {
      logger.warn({ outboxId: id, organizationId, err: error }, 'outbox dispatch left to the sweep');
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
        if (inFlight.size >= MAX_IN_FLIGHT) return;
        const dispatch = dispatchCommitted(organizationId, row.id, command).finally(() =>
          inFlight.delete(dispatch),
        );
        inFlight.add(dispatch);
      });
    },

    async sweep(limit) {
      const rows = await leaseDue(database, limit);
      let dispatched = 0;
      for (const row of rows) {
        try {
          await workflows.dispatch(row.command);
          await database.autocommit((em) => em.nativeDelete(OutboxEntity, { id: row.id }));
          dispatched += 1;
        } catch (error) {
          await database.autocommit((em) =>
            em.nativeUpdate(
              OutboxEntity,
              { id: row.id },
              {
                lastError: error instanceof Error ? error.message.slice(0, 500) : String(error),
                deadAt: row.attempts >= MAX_ATTEMPTS ? new Date() : null,
              },
            ),
          );
          logger[row.attempts >= MAX_ATTEMPTS ? 'error' : 'warn'](
            { outboxId: row.id, organizationId: row.organizationId, attempts: row.attempts, err: error },
            row.attempts >= MAX_ATTEMPTS ? 'outbox command given up' : 'outbox command failed',
          );
        }
      }
      return dispatched;
    },

    async drain() {
      await Promise.all(inFlight);
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

/** Marks due rows as taken (by moving their time) in one statement, so that two sweeps never take the same row. */
async function leaseDue(database: Database, limit: number) {
  return database.autocommit((em) =>
    em.execute<{ id: string; organizationId: string; command: OutboxCommand; attempts: number }[]>(
      `update outbox set attempts = attempts + 1,
         available_at = now() + least(? * power(2, least(attempts, 10)), ?) * interval '1 millisecond'
       where id in (select id from outbox where available_at <= now() and dead_at is null
                    order by available_at limit ? for update skip locked)
       returning id, org_id as "organizationId", command, attempts`,
      [FIRST_SWEEP_AFTER_MS, MAX_BACKOFF_MS, limit],
    ),
  );
}
