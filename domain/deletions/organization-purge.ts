import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../platform/database/database.ts';
import type { Storage } from '../../platform/storage.ts';
import { purgeExports } from '../exports/purge-exports.ts';
import { deleteOrganizationReceipts } from '../inbound/delete-receipts.ts';
import { releaseAddressesOfOrganization } from '../inboxes/address-claims.ts';
import { deleteOrganizationMessages } from '../messages/purge-messages.ts';
import { sweepOrganizationObjects } from '../stored-objects/sweep-organization.ts';
import { lockPurging, markPurged } from './deletion-purge.service.ts';
import {
  DELTA_TABLES,
  deleteAll,
  deleteBatch,
  TABLES_AFTER_MESSAGES,
  TABLES_BEFORE_MESSAGES,
  TABLES_WITH_ORGANIZATION,
} from './purge-tables.ts';

export interface PurgeSlice {
  isDone: boolean;
  /** Rows deleted in batches; their children are not counted. */
  rows: number;
}

export interface PurgeSliceOptions {
  /** Time limit; the slice ends after the batch that exceeds it. */
  limitMs: number;
  isAborted: () => boolean;
}

export interface OrganizationPurgeOptions {
  database: Database;
  storage: Pick<Storage, 'deleteMany' | 'multipartUploads'>;
  /** Waits between batches. */
  pause?: (ms: number) => Promise<unknown>;
  batchSize?: number;
}

const BATCH_SIZE = 500;
/** A pause lasts as long as its batch, so that a purge uses at most half of the capacity of a connection. */
const MAX_PAUSE_MS = 5_000;

/** Deletes at most a batch. Returns the number of rows. */
type PurgeStep = (organizationId: string, batchSize: number) => Promise<number>;

export type OrganizationPurge = ReturnType<typeof createOrganizationPurge>;

export function createOrganizationPurge(options: OrganizationPurgeOptions) {
  const { database, storage, pause = sleep, batchSize = BATCH_SIZE } = options;

  const steps: PurgeStep[] = [
    ...TABLES_BEFORE_MESSAGES.map(toStep),
    (organizationId, limit) => deleteOrganizationMessages(database, organizationId, limit),
    ...TABLES_AFTER_MESSAGES.map(toStep),
    async (organizationId) => {
      await purgeExports({ database, storage }, organizationId);
      return 0;
    },
  ];

  function toStep(table: Parameters<typeof deleteBatch>[1]): PurgeStep {
    return (organizationId, limit) => deleteBatch(database, table, { organizationId, batchSize: limit });
  }

  /** The subject of the purge; null if the purge is complete. Checked before every batch, so that a stop takes effect. */
  const findSubject = (deletionId: string): Promise<string | null> =>
    database.systemTransaction(({ db }) => lockPurging(db, deletionId, 'organization'));

  /**
   * Deletes the organization's row, and with it all remaining rows. The lock makes transactions that add rows wait. They
   * then fail, because the organization no longer exists.
   */
  async function deleteOrganization(deletionId: string, organizationId: string): Promise<void> {
    await database.systemTransaction(async ({ db }) => {
      await lockPurging(db, deletionId, 'organization');
      for (const table of DELTA_TABLES) await deleteAll(db, table, organizationId);
      await db
        .selectFrom('organizations')
        .select('id')
        .where('id', '=', organizationId)
        .forUpdate()
        .execute();
      const domains = await db
        .selectFrom('domains')
        .select('domain_name as name')
        .where('org_id', '=', organizationId)
        .execute();
      await releaseAddressesOfOrganization(
        db,
        organizationId,
        domains.map(({ name }) => name),
      );
      await deleteOrganizationReceipts(db, organizationId);
      for (const table of TABLES_WITH_ORGANIZATION) await deleteAll(db, table, organizationId);
    });
  }

  return {
    /**
     * Deletes everything that belongs to a closed organization, in batches that commit separately. The purge can be
     * interrupted at any point, and the next call continues. The row of the organization is deleted last, then its stored
     * objects.
     *
     * @throws AppError `conflict` if the purge was stopped.
     */
    async purge(deletionId: string, { limitMs, isAborted }: PurgeSliceOptions): Promise<PurgeSlice> {
      const endsAt = performance.now() + limitMs;
      let rows = 0;
      for (const step of steps) {
        for (let deleted = batchSize; deleted === batchSize; ) {
          const startedAt = performance.now();
          const organizationId = await findSubject(deletionId);
          if (organizationId === null) return { isDone: true, rows };
          deleted = await step(organizationId, batchSize);
          rows += deleted;
          if (isAborted() || performance.now() > endsAt) return { isDone: false, rows };
          await pause(Math.min(MAX_PAUSE_MS, performance.now() - startedAt));
        }
      }
      const organizationId = await findSubject(deletionId);
      if (organizationId === null) return { isDone: true, rows };
      await deleteOrganization(deletionId, organizationId);
      if ((await sweepOrganizationObjects(database, storage, organizationId)) === 'more')
        return { isDone: false, rows };
      await markPurged(database.db, deletionId);
      return { isDone: true, rows };
    },
  };
}
