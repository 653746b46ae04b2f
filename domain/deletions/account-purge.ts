import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { erasePersonFromAudit } from '../audit/erase-person.ts';
import { deleteInvitationsOf } from '../invitations/delete-invitations.ts';
import { deletePersonNotifications } from '../notifications/delete-person-notifications.ts';
import { deleteUser } from '../people/deleted-account.ts';
import { lockPurging, markPurged } from './purge.service.ts';

export interface AccountPurge {
  /**
   * Deletes the person's data in one transaction: account, sessions, factors, memberships, emails to them. Organizations
   * keep the id in their audit log and with the API keys the person created. Idempotent.
   *
   * @returns a summary.
   * @throws AppError `conflict` if the purge was stopped.
   */
  purge(deletionId: string): Promise<string>;
}

export function createAccountPurge({ database }: { database: Database }): AccountPurge {
  return {
    purge: (deletionId) =>
      database.systemTransaction(async ({ em }) => {
        const userId = await lockPurging(em, deletionId, 'account');
        if (userId === null) return 'purged before';
        const [user] = await em.execute<{ email: string }[]>(
          sql`select email from users where id = ${userId}`,
        );
        const person = { userId, email: user?.email ?? '' };
        const emails = await deletePersonNotifications(em, person);
        await deleteInvitationsOf(em, person);
        const entries = await erasePersonFromAudit(em, userId);
        await deleteUser(em, userId);
        await markPurged(em, deletionId);
        return `purged: deleted the account and ${emails} email(s), erased ${entries} client address(es)`;
      }),
  };
}
