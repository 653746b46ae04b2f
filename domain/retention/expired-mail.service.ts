import { setTimeout as sleep } from 'node:timers/promises';
import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { EventService } from '../events/event.service.ts';
import { deleteExpiredBatch } from '../messages/delete-expired-batch.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { DAY_MS, isDeleting } from './retention-plan.ts';
import { RetentionPolicyEntity } from './retention-policy.entity.ts';

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

export interface ExpiredMailService {
  /**
   * Deletes an organization's expired messages, one batch per transaction, with a proportional pause after each. Each
   * batch rereads the policy, so a change, postponement or suspension takes effect with the next batch. Safe to
   * interrupt and resume at any point. A process runs one deletion at a time.
   *
   * @param options.onProgress called after each batch.
   * @returns null while another deletion runs in this process.
   */
  deleteExpired(organizationId: string, options: DeletionSliceOptions): Promise<DeletionSlice | null>;
}

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
}: ExpiredMailOptions): ExpiredMailService {
  // One at a time per process, so that the load does not grow with the number of organizations.
  let busy = false;

  const deleteBatch = (organizationId: string, cursor: DeletionCursor | null): Promise<BatchResult> =>
    database.systemTransaction(async (transaction) => {
      const { em } = transaction;
      const days = await readRetentionDays(em, organizationId);
      if (typeof days === 'string') return { end: 'stopped', detail: days };
      const environmentId = cursor?.environmentId ?? (await findNextEnvironment(em, organizationId, ''));
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
      const next = await findNextEnvironment(em, organizationId, environmentId);
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
    async deleteExpired(organizationId, options) {
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
async function readRetentionDays(em: EntityManager, organizationId: string): Promise<number | string> {
  const policy = await em.findOne(
    RetentionPolicyEntity,
    { organizationId },
    { lockMode: LockMode.PESSIMISTIC_READ },
  );
  if (policy?.postponedUntil) return `Postponed until ${policy.postponedUntil.toISOString()}.`;
  if (!policy || !isDeleting(policy)) return 'Messages are kept forever.';
  const organization = await em.findOne(OrganizationEntity, { id: organizationId });
  if (!organization || organization.deletedAt) return 'The organization is closed.';
  return organization.status === 'active' ? policy.appliedDays : 'The organization is suspended.';
}

async function findNextEnvironment(
  em: EntityManager,
  organizationId: string,
  after: string,
): Promise<string | null> {
  const environment = await em.findOne(
    EnvironmentEntity,
    { organizationId, id: { $gt: after } },
    { fields: ['id'], orderBy: { id: 'asc' } },
  );
  return environment?.id ?? null;
}
