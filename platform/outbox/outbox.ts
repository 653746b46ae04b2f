import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Logger } from 'pino';
import { anyOf } from '../database/any-of.ts';
import { compileOnce } from '../database/compile-once.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { JsonParameter } from '../database/json.ts';
import { PREPARED } from '../database/prepared.ts';
import { activeTraceparent } from '../tracing/span.ts';
import { BESIDE_FLOOD, createDispatcher, type DispatcherOptions, priorityOf } from './dispatcher.ts';
import type { OutboxCommand } from './outbox-command.ts';

export interface Outbox {
  /**
   * Writes the command in the caller's transaction and dispatches it right after the commit.
   *
   * @param ownerId the organization; for the lifecycle of a person, the user.
   */
  enqueue(transaction: Transaction, ownerId: string, command: OutboxCommand): void;
  /**
   * Dispatches commands that their own process did not dispatch: of each organization its most urgent and oldest ones, an
   * equal share for each. Returns the number of dispatched commands, and 0 only if none is due or all fail.
   */
  sweep(limit: number): Promise<number>;
  /**
   * Resolves once every command enqueued so far is dispatched or left to the sweep.
   *
   * @param organizationId waits for its commands alone.
   */
  drain(organizationId?: string): Promise<void>;
}

export interface OutboxOptions extends DispatcherOptions {
  database: Database;
  logger: Logger;
  /** How often leases of rows that wait in this process are renewed. Default: 5 s. */
  renewIntervalMs?: number;
}

/** The sweep leaves newer rows to the process that wrote them. */
const FIRST_SWEEP_AFTER_MS = 10_000;
/** For this long at a time, a process keeps rows from the sweep whose commands wait longer for their turn. */
const LEASE_MS = 30_000;
const RENEW_INTERVAL_MS = 5_000;
/** Maximum commands (of about 1 KiB) that wait in one process; further ones are left to the sweep. */
const MAX_WAITING_COMMANDS = 20_000;
/** Of one organization, so that its flood does not push the commands of others to the sweep. */
const MAX_WAITING_COMMANDS_PER_ORGANIZATION = 5_000;
const MAX_ATTEMPTS = 200;
const MAX_BACKOFF_MS = 600_000;

export function createOutbox(options: OutboxOptions): Outbox {
  const { database, logger } = options;
  /** The dispatches in progress, with their organizations. */
  const waiting = new Map<Promise<void>, string>();
  const ownRows = createOwnRows(options);
  const dispatch = createDispatcher(options);
  const deleteLater = createBatchedDelete(database);
  const insertLater = createBatchedInsert();

  async function dispatchCommitted(
    organizationId: string,
    id: number,
    command: OutboxCommand,
  ): Promise<void> {
    try {
      await dispatch({ organizationId, command });
      ownRows.noteProgress();
      await deleteLater(id);
    } catch (error) {
      logger.warn(
        { outboxId: id, organizationId, ...idsOf(command), err: error },
        'outbox dispatch left to the sweep',
      );
      await recordFirstFailure(organizationId, id, error);
    }
  }

  /** While Temporal is away no sweep runs, so the row of the command would not show why it waits. */
  async function recordFirstFailure(organizationId: string, id: number, error: unknown): Promise<void> {
    await database
      .transaction({ organizationId }, ({ db }) =>
        db
          .updateTable('outbox')
          .set((eb) => ({ attempts: eb('attempts', '+', 1), last_error: describeError(error) }))
          .where('id', '=', id)
          .execute(),
      )
      .catch((err: unknown) =>
        logger.warn({ outboxId: id, organizationId, err }, 'could not record a failure'),
      );
  }

  async function dispatchLeased(row: LeasedRow): Promise<boolean> {
    const { id, organizationId, command, attempts, isFlood } = row;
    try {
      await dispatch({ organizationId, command, swept: isFlood ? 'beside_flood' : 'alone' });
      await deleteLater(id);
      return true;
    } catch (error) {
      const isDead = attempts >= MAX_ATTEMPTS;
      await database.db
        .updateTable('outbox')
        .set({ last_error: describeError(error), dead_at: isDead ? sql`now()` : null })
        .where('id', '=', id)
        .execute();
      logger[isDead ? 'error' : 'warn'](
        { outboxId: id, organizationId, attempts, ...idsOf(command), err: error },
        isDead ? 'outbox command is dead' : 'outbox command failed',
      );
      return false;
    }
  }

  return {
    enqueue(transaction, organizationId, command) {
      const { requestId } = transaction;
      const traceparent = activeTraceparent();
      const traced: OutboxCommand = {
        ...command,
        ...(command.start && requestId ? { start: { ...command.start, requestId } } : {}),
        ...(traceparent ? { traceparent } : {}),
      };
      const row = insertLater(transaction, {
        organizationId,
        command: traced,
        taskQueue: traced.start?.taskQueue ?? null,
        priority: priorityOf(traced),
        availableAt: new Date(Date.now() + FIRST_SWEEP_AFTER_MS),
      });
      transaction.afterCommit(() => {
        const { id } = row;
        if (id === undefined) throw new Error('A command was enqueued too late for its transaction');
        const own = ownRows.countOf(organizationId);
        if (waiting.size >= MAX_WAITING_COMMANDS || own >= MAX_WAITING_COMMANDS_PER_ORGANIZATION) return;
        const forget = ownRows.add(organizationId, id);
        const dispatched = dispatchCommitted(organizationId, id, traced).finally(() => {
          waiting.delete(dispatched);
          forget();
        });
        waiting.set(dispatched, organizationId);
      });
    },

    async sweep(limit) {
      const rows = await leaseDue(database, limit);
      const results = await Promise.all(rows.map(dispatchLeased));
      return results.filter(Boolean).length;
    },

    async drain(organizationId) {
      const isMeant = (owner: string) => organizationId === undefined || owner === organizationId;
      await Promise.all([...waiting].flatMap(([dispatched, owner]) => (isMeant(owner) ? [dispatched] : [])));
    },
  };
}

/** A gRPC error's message says only that the call failed; its cause says why. */
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error).slice(0, 500);
  const { cause } = error;
  return `${error.message}${cause instanceof Error ? `: ${cause.message}` : ''}`.slice(0, 500);
}

const idsOf = ({ start, signal }: OutboxCommand) => ({
  workflowId: start?.workflowId ?? signal?.workflowId,
  requestId: start?.requestId,
});

/**
 * The rows whose commands wait in this process. Renews their leases while it makes progress: otherwise the sweep would send
 * each start of a long queue a second time, and do nothing else meanwhile. If the process dies or hangs, the sweep takes them.
 */
function createOwnRows({ database, logger, renewIntervalMs = RENEW_INTERVAL_MS }: OutboxOptions) {
  const leases = new Map<string, Map<number, number>>();
  let timer: NodeJS.Timeout | undefined;
  let hasProgress = false;

  async function renew(organizationId: string, rows: Map<number, number>, now: number): Promise<void> {
    const ids = [...rows].filter(([, until]) => until < now + LEASE_MS / 2).map(([id]) => id);
    if (ids.length === 0) return;
    for (const id of ids) rows.set(id, now + LEASE_MS);
    await database.transaction({ organizationId }, ({ db }) =>
      db
        .updateTable('outbox')
        .set({ available_at: new Date(now + LEASE_MS) })
        .where('id', '=', anyOf(ids))
        // Not those that the sweep has taken.
        .where('attempts', '=', 0)
        .execute(),
    );
  }

  async function renewAll(): Promise<void> {
    if (leases.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
    if (!hasProgress) return;
    hasProgress = false;
    const now = Date.now();
    for (const [organizationId, rows] of [...leases])
      await renew(organizationId, rows, now).catch((err: unknown) =>
        logger.warn({ organizationId, err }, 'could not keep outbox rows from the sweep'),
      );
  }

  return {
    noteProgress() {
      hasProgress = true;
    },
    countOf: (organizationId: string) => leases.get(organizationId)?.size ?? 0,
    /** @returns removes it. */
    add(organizationId: string, id: number): () => void {
      const rows = leases.get(organizationId) ?? new Map<number, number>();
      leases.set(organizationId, rows.set(id, Date.now() + FIRST_SWEEP_AFTER_MS));
      timer ??= setInterval(() => void renewAll(), renewIntervalMs).unref();
      return () => {
        rows.delete(id);
        if (rows.size === 0 && leases.get(organizationId) === rows) leases.delete(organizationId);
      };
    },
  };
}

interface NewRow {
  organizationId: string;
  command: OutboxCommand;
  taskQueue: string | null;
  priority: number;
  availableAt: Date;
}
/** Of one statement: deleting an inbox cancels all its queued sends in one transaction. */
const INSERT_BATCH_SIZE = 1_000;
/** The row's id, once it is inserted. */
type InsertedRow = { id?: number };

/** Inserts the rows of a transaction together, before its commit. */
function createBatchedInsert(): (transaction: Transaction, row: NewRow) => InsertedRow {
  const batches = new WeakMap<Transaction, { rows: NewRow[]; inserted: InsertedRow[] }>();

  async function insertBatch(transaction: Transaction): Promise<void> {
    const { rows, inserted } = batches.get(transaction) ?? { rows: [], inserted: [] };
    batches.delete(transaction);
    for (let start = 0; start < rows.length; start += INSERT_BATCH_SIZE) {
      const batch = rows.slice(start, start + INSERT_BATCH_SIZE);
      const ids = await insertCommands(transaction.db, { rows: JSON.stringify(batch) });
      for (const [index, { id }] of ids.entries()) Object.assign(inserted[start + index] ?? {}, { id });
    }
  }

  return (transaction, row) => {
    let batch = batches.get(transaction);
    if (!batch) {
      batch = { rows: [], inserted: [] };
      batches.set(transaction, batch);
      transaction.writeLater(() => insertBatch(transaction));
    }
    const inserted: InsertedRow = {};
    batch.rows.push(row);
    batch.inserted.push(inserted);
    return inserted;
  };
}

/** `rows`: JSON of {@link NewRow}s. Inserts them in their order, and returns the ids in it. */
const insertCommands = compileOnce((db, { rows }: { rows: string }) =>
  db
    .insertInto('outbox')
    .columns(['org_id', 'command', 'task_queue', 'priority', 'available_at'])
    .expression(
      db
        .selectFrom(
          sql<
            Omit<NewRow, 'command'> & { command: JsonParameter<OutboxCommand>; position: number }
          >`rows from (jsonb_to_recordset(${rows}::jsonb) as ("organizationId" text, command jsonb, "taskQueue" text,
            priority smallint, "availableAt" timestamptz)) with ordinality`.as<'v'>(
            sql`v("organizationId", command, "taskQueue", priority, "availableAt", position)`,
          ),
        )
        .select(['v.organizationId', 'v.command', 'v.taskQueue', 'v.priority', 'v.availableAt'])
        .orderBy('v.position'),
    )
    .returning('id')
    .modifyEnd(PREPARED),
);

/** Long enough to collect rows under load, far shorter than `FIRST_SWEEP_AFTER_MS`. */
const BATCH_DELAY_MS = 50;

/**
 * Deletes rows of dispatched commands in batches, those of all organizations in one statement: a transaction for each row
 * would double the cost of the outbox. A row that a crash leaves behind is dispatched again, which has no effect.
 */
function createBatchedDelete(database: Database): (id: number) => Promise<void> {
  let batch: { ids: number[]; removed: Promise<void> } | undefined;

  async function removeLater(ids: readonly number[]): Promise<void> {
    await pause(BATCH_DELAY_MS);
    batch = undefined;
    await database.db.selectNoFrom(sql<number>`delete_dispatched(${ids})`.as('count')).execute();
  }

  return (id) => {
    if (!batch) {
      const ids: number[] = [];
      batch = { ids, removed: removeLater(ids) };
    }
    batch.ids.push(id);
    return batch.removed;
  };
}

interface LeasedRow {
  id: number;
  organizationId: string;
  command: OutboxCommand;
  attempts: number;
  /** So many commands of the organization wait in other processes that those, too, dispatch one after the other. */
  isFlood: boolean;
}

/** Of an organization, in processes that keep them from the sweep. */
const MIN_WAITING_OF_FLOOD = 1_000;

/**
 * Leases due rows by advancing `available_at` in one statement, so concurrent sweeps never take the same row. Steps from
 * organization to organization along the index, so that one with many rows costs no more than its share. Rows of a flood rest
 * longer, so that fewer are taken: the batch ends as soon, and the next one takes the rows of others.
 */
async function leaseDue({ db }: Database, limit: number): Promise<LeasedRow[]> {
  const { rows } = await sql<LeasedRow>`
    with recursive organizations as (
      (select org_id from outbox where dead_at is null order by org_id limit 1)
      union all
      select (select o.org_id from outbox o where o.dead_at is null and o.org_id > organizations.org_id
              order by o.org_id limit 1)
      from organizations where organizations.org_id is not null
    ), due as (
      select org_id from organizations where exists (
        select from outbox o where o.org_id = organizations.org_id and o.dead_at is null and o.available_at <= now())
    ), floods as (
      select org_id from due where ${MIN_WAITING_OF_FLOOD}::int <= (select count(*) from (
        select from outbox o
        where o.org_id = due.org_id and o.dead_at is null and o.available_at > now() and o.attempts = 0
        limit ${MIN_WAITING_OF_FLOOD}) as waiting)
    ), shares as (
      select o.id, o.turn, o.priority from due cross join lateral (
        select id, priority, row_number() over (order by priority, available_at) as turn from outbox
        where outbox.org_id = due.org_id and dead_at is null and available_at <= now()
        order by priority, available_at
        limit greatest(1, ${limit}::int / (select count(*) from due)
          / case when due.org_id = any(array(select org_id from floods)) then ${BESIDE_FLOOD}::int else 1 end)) o
    )
    update outbox set attempts = attempts + 1,
      available_at = now()
        + least(${FIRST_SWEEP_AFTER_MS}::int * power(2, least(attempts, 10)), ${MAX_BACKOFF_MS}::int) * interval '1 millisecond'
    where id = any(array(
      select id from outbox where dead_at is null and available_at <= now()
        and id in (select id from shares order by turn, priority limit ${limit})
      for update skip locked))
    returning id, org_id as "organizationId", command, attempts,
      org_id = any(array(select org_id from floods)) as "isFlood"`.execute(db);
  return rows;
}
