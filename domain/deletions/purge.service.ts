import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { createRecoveryToken } from '../people/deleted-account.ts';
import type { DeletionKind, DeletionStatus } from './deletion.entity.ts';

/** `not_due`: call it again later. The others are the row's status, and `gone` without a row. */
export type BegunPurge = DeletionStatus | 'not_due' | 'gone';

/** The steps of a purge before it deletes anything. All are idempotent. */
export interface PurgeService {
  /** Reminds the person or the owners that the purge is near. Returns the number of emails. */
  remind(deletionId: string, daysLeft: number): Promise<number>;
  /** From `purging` on, nothing can be recovered. */
  begin(deletionId: string): Promise<BegunPurge>;
  /** Stops a purge that waits or runs; an ended one stays as it is. Returns its status. */
  stop(deletionId: string): Promise<string>;
}

export interface PurgeServiceOptions {
  database: Database;
  notifications: NotificationService;
  personNotifications: PersonNotificationService;
}

interface WaitingDeletion {
  kind: DeletionKind;
  subjectId: string;
  accountDeletionId: string | null;
  dueAt: string;
}

export function createPurgeService(options: PurgeServiceOptions): PurgeService {
  const { database } = options;
  return {
    remind: (deletionId, daysLeft) =>
      database.systemTransaction(async (transaction) => {
        const [deletion] = await transaction.em.execute<WaitingDeletion[]>(sql`
          select kind, subject_id as "subjectId", account_deletion_id as "accountDeletionId", due_at as "dueAt"
          from deletions where id = ${deletionId} and status = 'waiting' and due_at > now() for update`);
        if (!deletion) return 0;
        const occasion = { dedupeKey: `deletion-reminder/${deletionId}/${daysLeft}`, deletion };
        return deletion.kind === 'account'
          ? remindPerson(options, transaction, occasion)
          : remindOwners(options, transaction, occasion);
      }),

    async begin(deletionId) {
      const [begun] = await database.query<{ status: DeletionStatus }>(sql`
        update deletions set status = 'purging', purge_started_at = coalesce(purge_started_at, now())
        where id = ${deletionId} and (status = 'waiting' and due_at <= now() or status = 'purging') returning status`);
      if (begun) return begun.status;
      const status = await readStatus(database, deletionId);
      return status === 'waiting' ? 'not_due' : (status ?? 'gone');
    },

    async stop(deletionId) {
      await database.query(sql`
        update deletions set status = 'stopped', ended_at = now()
        where id = ${deletionId} and status in ('waiting', 'purging')`);
      return (await readStatus(database, deletionId)) ?? 'gone';
    },
  };
}

async function readStatus(database: Database, deletionId: string): Promise<DeletionStatus | undefined> {
  const [row] = await database.query<{ status: DeletionStatus }>(
    sql`select status from deletions where id = ${deletionId}`,
  );
  return row?.status;
}

interface Occasion {
  dedupeKey: string;
  deletion: WaitingDeletion;
}

async function remindPerson(
  { personNotifications }: PurgeServiceOptions,
  transaction: Transaction,
  { dedupeKey, deletion: { subjectId: userId, dueAt } }: Occasion,
): Promise<number> {
  const { em } = transaction;
  const [user] = await em.execute<{ email: string }[]>(
    sql`select email from users where id = ${userId} and deleted_at is not null`,
  );
  if (!user) return 0;
  await personNotifications.notify<'account-deletion-reminder', 'token'>(transaction, {
    userId,
    email: user.email,
    template: 'account-deletion-reminder',
    params: { recoverableUntil: formatUtc(new Date(dueAt)) },
    secrets: { token: await createRecoveryToken(em, userId) },
    dedupeKey,
  });
  return 1;
}

/** An organization that was closed with an account comes back with it, and the person is reminded of the account. */
async function remindOwners(
  { notifications }: PurgeServiceOptions,
  transaction: Transaction,
  { dedupeKey, deletion: { subjectId: organizationId, accountDeletionId, dueAt } }: Occasion,
): Promise<number> {
  const [organization] = await transaction.em.execute<{ name: string }[]>(
    sql`select name from organizations where id = ${organizationId} and deleted_at is not null`,
  );
  if (!organization || accountDeletionId !== null) return 0;
  await notifications.notifyOwners(transaction, {
    organizationId,
    template: 'organization-deletion-reminder',
    params: { organizationId, name: organization.name, recoverableUntil: formatUtc(new Date(dueAt)) },
    dedupeKey,
  });
  return 1;
}

/**
 * Locks a deletion whose purge has begun, and returns the id of its subject; null if the purge is complete.
 *
 * @throws AppError `conflict` if it was stopped meanwhile.
 */
export async function lockPurging(
  em: EntityManager,
  deletionId: string,
  kind: DeletionKind,
): Promise<string | null> {
  const [row] = await em.execute<{ subjectId: string; status: DeletionStatus }[]>(sql`
    select subject_id as "subjectId", status from deletions where id = ${deletionId} and kind = ${kind} for update`);
  if (row?.status === 'purging') return row.subjectId;
  if (row?.status === 'purged') return null;
  throw new AppError('conflict', {
    detail: `The deletion ${deletionId} is ${row?.status ?? 'unknown'}: nothing is purged.`,
    fix: 'If it was stopped by mistake, resume it as described in docs/runbook/stuck-work.md.',
  });
}

export async function markPurged(em: EntityManager, deletionId: string): Promise<void> {
  await em.execute(sql`update deletions set status = 'purged', ended_at = now() where id = ${deletionId}`);
}
