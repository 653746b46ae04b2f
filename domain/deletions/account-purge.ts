import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { readDatabaseTime } from '../../platform/database/database-time.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Storage } from '../../platform/storage.ts';
import { erasePersonFromAudit } from '../audit/erase-person.ts';
import { expireArchives } from '../exports/purge-exports.ts';
import { deleteInvitationsOf } from '../invitations/delete-invitations.ts';
import { deletePersonNotifications } from '../notifications/person-notification.service.ts';
import { deleteUser } from '../people/deleted-account.ts';
import { sweepDueObjects } from '../stored-objects/sweep-organization.ts';
import { lockPurging, markPurged } from './deletion-purge.service.ts';

export interface AccountPurgeOptions {
  database: Database;
  outbox: Pick<Outbox, 'enqueue'>;
  storage: Pick<Storage, 'deleteMany'>;
}

/** Pause while another process deletes the remaining objects. */
const SWEEP_PAUSE_MS = 1_000;

export type AccountPurge = ReturnType<typeof createAccountPurge>;

export function createAccountPurge({ database, outbox, storage }: AccountPurgeOptions) {
  /**
   * Expires the archives of the person's organizations, which name their members. The links stop working before the account
   * is deleted.
   */
  async function expireArchivesOf(transaction: Transaction, userId: string): Promise<string[]> {
    const rows = await transaction.db
      .selectFrom('members')
      .select(['org_id as organizationId', sql<string>`clock_timestamp()::text`.as('now')])
      .where('user_id', '=', userId)
      .execute();
    for (const { organizationId, now } of rows)
      await expireArchives(transaction, outbox, { organizationId, madeBefore: now });
    return rows.map(({ organizationId }) => organizationId);
  }

  async function sweepArchives(organizationIds: readonly string[]): Promise<void> {
    const dueBefore = await readDatabaseTime(database);
    for (const organizationId of organizationIds)
      while ((await sweepDueObjects(database, storage, { organizationId, dueBefore })) === 'more')
        await sleep(SWEEP_PAUSE_MS);
  }

  async function deleteAccount(
    transaction: Transaction,
    userId: string,
    deletionId: string,
  ): Promise<string> {
    const { db } = transaction;
    // An archive may have been created meanwhile. The next sweep deletes its object.
    await expireArchivesOf(transaction, userId);
    const user = await db.selectFrom('users').select('email').where('id', '=', userId).executeTakeFirst();
    const person = { userId, email: user?.email ?? '' };
    const emails = await deletePersonNotifications(transaction.db, person);
    await deleteInvitationsOf(db, person);
    const entries = await erasePersonFromAudit(db, userId);
    await deleteUser(db, userId);
    await markPurged(db, deletionId);
    return `purged: deleted the account and ${emails} email(s), erased ${entries} client address(es)`;
  }

  /** Runs a step unless the account is already purged. */
  const whilePurging = <T>(
    deletionId: string,
    step: (transaction: Transaction, userId: string) => Promise<T>,
  ): Promise<T | null> =>
    database.systemTransaction(async (transaction) => {
      const userId = await lockPurging(transaction.db, deletionId, 'account');
      return userId === null ? null : step(transaction, userId);
    });

  return {
    /**
     * Deletes the person's data in one transaction: account, sessions, factors, memberships, and emails to the person.
     * Organizations keep the id in their audit log and in the API keys that the person created. Archives of their exports
     * name the person, so they expire, and their objects are deleted before this returns. Idempotent.
     *
     * @returns a summary.
     * @throws AppError `conflict` if the purge was stopped.
     */
    async purge(deletionId: string): Promise<string> {
      await sweepArchives((await whilePurging(deletionId, expireArchivesOf)) ?? []);
      const summary = await whilePurging(deletionId, (transaction, userId) =>
        deleteAccount(transaction, userId, deletionId),
      );
      return summary ?? 'purged before';
    },
  };
}
