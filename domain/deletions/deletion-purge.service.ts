import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { createRecoveryToken } from '../people/deleted-account.ts';
import type { DeletionKind, DeletionStatus } from './deletion.entity.ts';

/** `not_due`: call again later. `gone`: there is no row. Otherwise the status of the row. */
export type BegunPurge = DeletionStatus | 'not_due' | 'gone';

export interface DeletionPurgeServiceOptions {
  database: Database;
  notifications: NotificationService;
  personNotifications: PersonNotificationService;
}

interface WaitingDeletion {
  kind: DeletionKind;
  subjectId: string;
  accountDeletionId: string | null;
  dueAt: Date;
}

export type DeletionPurgeService = ReturnType<typeof createDeletionPurgeService>;

/** The steps of a purge before it deletes anything. All are idempotent. */
export function createDeletionPurgeService(options: DeletionPurgeServiceOptions) {
  const { database } = options;
  return {
    /** Reminds the person or the owners that the purge is near. Returns the number of emails. */
    remind: (deletionId: string, daysLeft: number): Promise<number> =>
      database.systemTransaction(async (transaction) => {
        const deletion = await transaction.db
          .selectFrom('deletions')
          .select([
            'kind',
            'subject_id as subjectId',
            'account_deletion_id as accountDeletionId',
            'due_at as dueAt',
          ])
          .where('id', '=', deletionId)
          .where('status', '=', 'waiting')
          .where('due_at', '>', sql<Date>`now()`)
          .forUpdate()
          .executeTakeFirst();
        if (!deletion) return 0;
        const occasion = { dedupeKey: `deletion-reminder/${deletionId}/${daysLeft}`, deletion };
        return deletion.kind === 'account'
          ? remindPerson(options, transaction, occasion)
          : remindOwners(options, transaction, occasion);
      }),

    /** From `purging` on, nothing can be recovered. */
    async begin(deletionId: string): Promise<BegunPurge> {
      const begun = await database.db
        .updateTable('deletions')
        .set({ status: 'purging', purge_started_at: sql`coalesce(purge_started_at, now())` })
        .where('id', '=', deletionId)
        .where((eb) =>
          eb.or([
            eb.and([eb('status', '=', 'waiting'), eb('due_at', '<=', sql<Date>`now()`)]),
            eb('status', '=', 'purging'),
          ]),
        )
        .returning('status')
        .executeTakeFirst();
      if (begun) return begun.status;
      const status = await readStatus(database, deletionId);
      return status === 'waiting' ? 'not_due' : (status ?? 'gone');
    },

    /** Stops a waiting or running purge; an ended one stays as it is. Returns the status. */
    async stop(deletionId: string): Promise<string> {
      await database.db
        .updateTable('deletions')
        .set({ status: 'stopped', ended_at: sql`now()` })
        .where('id', '=', deletionId)
        .where('status', '=', anyOf(['waiting', 'purging'] as const))
        .execute();
      return (await readStatus(database, deletionId)) ?? 'gone';
    },
  };
}

async function readStatus(database: Database, deletionId: string): Promise<DeletionStatus | undefined> {
  const row = await database.db
    .selectFrom('deletions')
    .select('status')
    .where('id', '=', deletionId)
    .executeTakeFirst();
  return row?.status;
}

interface Occasion {
  dedupeKey: string;
  deletion: WaitingDeletion;
}

async function remindPerson(
  { personNotifications }: DeletionPurgeServiceOptions,
  transaction: Transaction,
  { dedupeKey, deletion: { subjectId: userId, dueAt } }: Occasion,
): Promise<number> {
  const { db } = transaction;
  const user = await db
    .selectFrom('users')
    .select('email')
    .where('id', '=', userId)
    .where('deleted_at', 'is not', null)
    .executeTakeFirst();
  if (!user) return 0;
  await personNotifications.notify<'account-deletion-reminder', 'token'>(transaction, {
    userId,
    email: user.email,
    template: 'account-deletion-reminder',
    params: { recoverableUntil: formatUtc(dueAt) },
    secrets: { token: await createRecoveryToken(db, userId) },
    dedupeKey,
  });
  return 1;
}

/**
 * An organization that was closed with an account needs no reminder: it is recovered with the account, for which the person
 * gets a reminder.
 */
async function remindOwners(
  { notifications }: DeletionPurgeServiceOptions,
  transaction: Transaction,
  { dedupeKey, deletion: { subjectId: organizationId, accountDeletionId, dueAt } }: Occasion,
): Promise<number> {
  const organization = await transaction.db
    .selectFrom('organizations')
    .select('name')
    .where('id', '=', organizationId)
    .where('deleted_at', 'is not', null)
    .executeTakeFirst();
  if (!organization || accountDeletionId !== null) return 0;
  await notifications.notifyOwners(transaction, {
    organizationId,
    template: 'organization-deletion-reminder',
    params: { organizationId, name: organization.name, recoverableUntil: formatUtc(dueAt) },
    dedupeKey,
  });
  return 1;
}

/**
 * Locks a deletion whose purge has begun, and returns the id of its subject; null if the purge is complete.
 *
 * @throws AppError `conflict` if it was stopped meanwhile.
 */
export async function lockPurging(db: Db, deletionId: string, kind: DeletionKind): Promise<string | null> {
  const row = await db
    .selectFrom('deletions')
    .select(['subject_id as subjectId', 'status'])
    .where('id', '=', deletionId)
    .where('kind', '=', kind)
    .forUpdate()
    .executeTakeFirst();
  if (row?.status === 'purging') return row.subjectId;
  if (row?.status === 'purged') return null;
  throw new AppError('conflict', {
    detail: `The deletion ${deletionId} is ${row?.status ?? 'unknown'}: nothing is purged.`,
    fix: 'If it was stopped by mistake, resume it as described in docs/runbook/stuck-work.md.',
  });
}

export async function markPurged(db: Db, deletionId: string): Promise<void> {
  await db
    .updateTable('deletions')
    .set({ status: 'purged', ended_at: sql`now()` })
    .where('id', '=', deletionId)
    .execute();
}
