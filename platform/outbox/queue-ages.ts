import type { Client } from '@temporalio/client';
import { sql } from 'kysely';
import type { Database } from '../database/database.ts';

/** How long the oldest start of a task queue has waited, in seconds: 0 if none waits, null if unknown. */
export interface QueueAge {
  /** In the outbox, for its delivery to Temporal. */
  outboxSeconds: number | null;
  /** In Temporal, for a worker. Also null if the server reports no backlog. */
  temporalSeconds: number | null;
}

export interface QueueAges {
  /** By task queue. Calls within a few seconds share one look. Never throws. */
  read(): Promise<Record<string, QueueAge>>;
}

export interface QueueAgesOptions {
  database: Pick<Database, 'db'>;
  temporal: Pick<Client, 'connection'>;
  namespace: string;
  queues: readonly string[];
  onError?: (error: unknown) => void;
  now?: () => number;
}

const CACHE_MS = 5_000;
const TIMEOUT_MS = 2_000;
/** `TaskQueueType` of Temporal's API. */
const TASK_QUEUE_TYPES = { workflow: 1, activity: 2 } as const;

export function createQueueAges({
  database,
  temporal,
  namespace,
  queues,
  onError,
  now = Date.now,
}: QueueAgesOptions): QueueAges {
  let known: { at: number; ages: Promise<Record<string, QueueAge>> } | undefined;

  const orUnknown = <T>(work: Promise<T>): Promise<T | null> =>
    work.catch((error: unknown) => {
      onError?.(error);
      return null;
    });

  async function look(): Promise<Record<string, QueueAge>> {
    const [outbox, ...backlogs] = await Promise.all([
      orUnknown(readOutbox(database)),
      ...queues.map((queue) => orUnknown(readBacklog({ temporal, namespace, queue }))),
    ]);
    return Object.fromEntries(
      queues.map((queue, index) => [
        queue,
        {
          outboxSeconds: outbox && Math.max(0, outbox.get(queue) ?? 0),
          temporalSeconds: backlogs[index] ?? null,
        },
      ]),
    );
  }

  return {
    read() {
      if (!known || now() - known.at >= CACHE_MS) known = { at: now(), ages: look() };
      return known.ages;
    },
  };
}

async function readOutbox({ db }: Pick<Database, 'db'>): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom(sql<{ task_queue: string; age_seconds: number }>`oldest_waiting_starts()`.as('waiting'))
    .selectAll()
    .execute();
  return new Map(rows.map((row) => [row.task_queue, row.age_seconds]));
}

/** The age of the oldest workflow or activity task that waits; null if the server does not report it. */
async function readBacklog({
  temporal: { connection },
  namespace,
  queue,
}: Pick<QueueAgesOptions, 'temporal' | 'namespace'> & { queue: string }): Promise<number | null> {
  const ages = await connection.withDeadline(Date.now() + TIMEOUT_MS, () =>
    Promise.all(
      Object.values(TASK_QUEUE_TYPES).map(async (taskQueueType) => {
        const { stats } = await connection.workflowService.describeTaskQueue({
          namespace,
          taskQueue: { name: queue },
          taskQueueType,
          reportStats: true,
        });
        const age = stats?.approximateBacklogAge;
        if (!stats) return null;
        return age ? Number(age.seconds ?? 0) + (age.nanos ?? 0) / 1e9 : 0;
      }),
    ),
  );
  const reported = ages.filter((age) => age !== null);
  return reported.length === 0 ? null : Math.max(...reported);
}
