import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { EventService } from '../events/event.service.ts';
import { deleteExpiredBatch } from '../messages/delete-expired-batch.ts';
import { DAY_MS, isDeleting } from './retention-plan.ts';

/** Where the deletion of an organization's expired messages continues. */
export interface DeletionCursor {
  environmentId: string;
  /** Id of the last message read in it; null at the beginning. */
  after: string | null;
}

export interface DeletionProgress {
  messages: number;
  threads: number;
  /** Null at the beginning. */
  cursor: DeletionCursor | null;
}

/** `done`: nothing expired is left. `more`: the time limit was reached. `stopped`: the policy changed; see `detail`. */
export type DeletionSlice = DeletionProgress & { end: 'done' | 'more' | 'stopped'; detail: string };

export type ExpiredMailService = ReturnType<typeof createExpiredMailService>;

export interface DeletionSliceOptions {
  from: DeletionProgress;
  /** Time limit; the slice ends after the batch that exceeds it. */
  limitMs: number;
  isAborted: () => boolean;
  onProgress: (progress: DeletionProgress) => void;
}

export interface ExpiredMailOptions {
  database: Database;
  outbox: Pick<Outbox, 'enqueue'>;
  events: Pick<EventService, 'redact'>;
  now?: () => Date;
  /** Waits between batches. */
  pause?: (ms: number) => Promise<unknown>;
}

/** Pause per time spent in a batch: deletion uses at most a fifth of the time. */
const PAUSE_FACTOR = 4;
/** Well below the activity's heartbeat timeout. */
const MAX_PAUSE_MS = 5_000;

export function createExpiredMailService({
  database,
  outbox,
  events,
  now = () => new Date(),
  pause = sleep,
}: ExpiredMailOptions) {
  // One at a time per process, so that the load does not grow with the number of organizations.
  let busy = false;

  const deleteBatch = (organizationId: string, cursor: DeletionCursor | null): Promise<BatchResult> =>
    database.systemTransaction(async (transaction) => {
      const { db } = transaction;
      const days = await readRetentionDays(db, organizationId);
      if (typeof days === 'string') return { end: 'stopped', detail: days };
      const environmentId = cursor?.environmentId ?? (await findNextEnvironment(db, organizationId, ''));
      if (environmentId === null) return DONE;
      const at = now();
      const { last, ...deleted } = await deleteExpiredBatch(
        transaction,
        { outbox, events },
        {
          organizationId,
          environmentId,
          cutoff: new Date(at.getTime() - days * DAY_MS),
          after: cursor?.after ?? null,
          now: at,
        },
      );
      if (last !== null) return { ...deleted, cursor: { environmentId, after: last } };
      const next = await findNextEnvironment(db, organizationId, environmentId);
      return next === null ? DONE : { ...deleted, cursor: { environmentId: next, after: null } };
    });

  async function deleteSlice(organizationId: string, options: DeletionSliceOptions): Promise<DeletionSlice> {
    const endsAt = performance.now() + options.limitMs;
    let progress = options.from;
    while (!options.isAborted()) {
      const startedAt = performance.now();
      const step = await deleteBatch(organizationId, progress.cursor);
      if ('end' in step) return { ...progress, ...step };
      progress = {
        messages: progress.messages + step.messages,
        threads: progress.threads + step.threads,
        cursor: step.cursor,
      };
      options.onProgress(progress);
      if (performance.now() > endsAt) break;
      await pause(Math.min(MAX_PAUSE_MS, (performance.now() - startedAt) * PAUSE_FACTOR));
    }
    return { ...progress, end: 'more', detail: '' };
  }

  return {
    /**
     * Deletes an organization's expired messages, one batch per transaction, with a proportional pause after each. Each
     * batch rereads the policy, so a change, postponement or suspension takes effect with the next batch. Safe to
     * interrupt and resume at any point. A process runs one deletion at a time.
     *
     * @param options.onProgress called after each batch.
     * @returns null while another deletion runs in this process.
     */
    async deleteExpired(
      organizationId: string,
      options: DeletionSliceOptions,
    ): Promise<DeletionSlice | null> {
      if (busy) return null;
      busy = true;
      try {
        return await deleteSlice(organizationId, options);
      } finally {
        busy = false;
      }
    },
  };
}

type BatchResult = (DeletionProgress & { cursor: DeletionCursor }) | Pick<DeletionSlice, 'end' | 'detail'>;

const DONE = { end: 'done', detail: '' } as const;

/**
 * Returns the retention days in effect, or why nothing is deleted. The row lock is shared: a policy change waits for
 * the batch, and no later batch uses the old policy.
 */
async function readRetentionDays(db: Db, organizationId: string): Promise<number | string> {
  const policy = await db
    .selectFrom('retention_policies')
    .select(['applied_days as appliedDays', 'postponed_until as postponedUntil'])
    .where('org_id', '=', organizationId)
    .forShare()
    .executeTakeFirst();
  if (policy?.postponedUntil) return `Postponed until ${policy.postponedUntil.toISOString()}.`;
  if (!policy || !isDeleting(policy)) return 'Messages are kept forever.';
  const organization = await db
    .selectFrom('organizations')
    .select(['status', 'deleted_at as deletedAt'])
    .where('id', '=', organizationId)
    .executeTakeFirst();
  if (!organization || organization.deletedAt) return 'The organization is closed.';
  return organization.status === 'active' ? policy.appliedDays : 'The organization is suspended.';
}

async function findNextEnvironment(db: Db, organizationId: string, after: string): Promise<string | null> {
  const environment = await db
    .selectFrom('environments')
    .select('id')
    .where('org_id', '=', organizationId)
    .where('id', '>', after)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst();
  return environment?.id ?? null;
}
