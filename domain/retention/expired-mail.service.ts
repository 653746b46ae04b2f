import { setTimeout as sleep } from 'node:timers/promises';
import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { deleteExpiredBatch } from './expired-batch.ts';
import { DAY_MS, deletesNow } from './retention-plan.ts';
import { RetentionPolicyEntity } from './retention-policy.entity.ts';

/** Where a walk through an organization's old mail goes on. */
export interface DeletionPlace {
  environmentId: string;
  /** The last message looked at there; null at the beginning. */
  after: string | null;
}

export interface DeletionProgress {
  messages: number;
  threads: number;
  /** Empty at the beginning. */
  place: DeletionPlace | null;
}

/** `done`: nothing old is left. `more`: its time was over. `stopped`: the policy says so by now; `detail` says how. */
export type Stretch = DeletionProgress & { end: 'done' | 'more' | 'stopped'; detail: string };

export interface ExpiredMailService {
  /**
   * Deletes an organization's old mail, a batch a transaction, with a pause in proportion after each. Each batch reads
   * the policy anew: one that was changed, postponed or suspended meanwhile holds from the next batch on. May end
   * anywhere and begin again anywhere; of two at once in a process the second is sent away.
   *
   * @param progressed called after each batch.
   * @returns null where another deletion is at it.
   */
  deleteExpired(organizationId: string, options: StretchOptions): Promise<Stretch | null>;
}

export interface StretchOptions {
  from: DeletionProgress;
  /** After this the stretch ends with its batch. */
  limitMs: number;
  aborted: () => boolean;
  progressed: (soFar: DeletionProgress) => void;
}

export interface ExpiredMailOptions {
  database: Database;
  outbox: Pick<Outbox, 'enqueue'>;
  now?: () => Date;
  /** Between batches. */
  pause?: (ms: number) => Promise<unknown>;
}

/** Four fifths of the time belong to others. */
const PAUSE_PER_BATCH = 4;
/** Well below the time after which a worker that is silent is taken for dead. */
const MAX_PAUSE_MS = 5_000;

export function createExpiredMailService({
  database,
  outbox,
  now = () => new Date(),
  pause = sleep,
}: ExpiredMailOptions): ExpiredMailService {
  // One at a time in a process: however many organizations delete today, their load is that of one.
  let busy = false;

  const batch = (organizationId: string, place: DeletionPlace | null): Promise<Step> =>
    database.systemTransaction(async (transaction) => {
      const { em } = transaction;
      const days = await readDays(em, organizationId);
      if (typeof days === 'string') return { end: 'stopped', detail: days };
      const environmentId = place?.environmentId ?? (await environmentAfter(em, organizationId, ''));
      if (environmentId === null) return DONE;
      const at = now();
      const { last, ...deleted } = await deleteExpiredBatch(transaction, outbox, {
        organizationId,
        environmentId,
        before: new Date(at.getTime() - days * DAY_MS),
        after: place?.after ?? null,
        now: at,
      });
      if (last !== null) return { ...deleted, place: { environmentId, after: last } };
      const next = await environmentAfter(em, organizationId, environmentId);
      return next === null ? DONE : { ...deleted, place: { environmentId: next, after: null } };
    });

  async function stretch(organizationId: string, options: StretchOptions): Promise<Stretch> {
    const endsAt = performance.now() + options.limitMs;
    let soFar = options.from;
    while (!options.aborted()) {
      const startedAt = performance.now();
      const step = await batch(organizationId, soFar.place);
      if ('end' in step) return { ...soFar, ...step };
      soFar = {
        messages: soFar.messages + step.messages,
        threads: soFar.threads + step.threads,
        place: step.place,
      };
      options.progressed(soFar);
      if (performance.now() > endsAt) break;
      await pause(Math.min(MAX_PAUSE_MS, (performance.now() - startedAt) * PAUSE_PER_BATCH));
    }
    return { ...soFar, end: 'more', detail: '' };
  }

  return {
    async deleteExpired(organizationId, options) {
      if (busy) return null;
      busy = true;
      try {
        return await stretch(organizationId, options);
      } finally {
        busy = false;
      }
    },
  };
}

type Step = (DeletionProgress & { place: DeletionPlace }) | Pick<Stretch, 'end' | 'detail'>;

const DONE = { end: 'done', detail: '' } as const;

/**
 * The days mail is kept by now, or why none is deleted. The lock is shared: whoever changes the policy waits for the
 * batch, and no batch is deleted by the old one afterwards.
 */
async function readDays(em: EntityManager, organizationId: string): Promise<number | string> {
  const policy = await em.findOne(
    RetentionPolicyEntity,
    { organizationId },
    { lockMode: LockMode.PESSIMISTIC_READ },
  );
  if (policy?.postponedUntil) return `Postponed until ${policy.postponedUntil.toISOString()}.`;
  if (!policy || !deletesNow(policy)) return 'Mail is kept for ever by now.';
  const organization = await em.findOne(OrganizationEntity, { id: organizationId });
  return organization?.status === 'active' ? policy.appliedDays : 'The organization is suspended.';
}

async function environmentAfter(
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
