import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { recordOrganizationAudit, recordPersonAudit } from '../audit/record-audit.ts';
import type { Client } from '../identity/person.ts';
import { invalidCredentials } from '../identity/sign-in-errors.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { reopenOrganizations } from '../organizations/closed-organization.ts';
import { restoreAccount } from '../people/deleted-account.ts';
import { buildPurgeCancel } from './purge-start.ts';
import { recoverClosedWith, recoverDeletion } from './recoverable-deletion.ts';

export type RestoreDeleted = (transaction: Transaction, userId: string, client: Client) => Promise<void>;

/**
 * Restores a deleted account with the organizations that were closed with it, in the caller's transaction. The person has
 * already proved everything that a sign-in requires.
 *
 * @throws AppError `invalid_credentials` if the account is not deleted, or can no longer be recovered.
 */
export function createRestoreDeleted({
  outbox,
  notifications,
}: {
  outbox: Pick<Outbox, 'enqueue'>;
  notifications: PersonNotificationService;
}): RestoreDeleted {
  return async (transaction, userId, { ip, requestId }) => {
    const { db } = transaction;
    const account = await recoverDeletion(db, userId);
    if (!account) throw invalidCredentials();
    const organizations = await recoverClosedWith(db, account.deletionId);
    const email = await restoreAccount(db, userId);
    await reopenOrganizations(
      db,
      organizations.map(({ subjectId }) => subjectId),
    );
    const person = { userId, ip, requestId };
    await recordPersonAudit(db, person, { action: 'user.recovered' });
    for (const { subjectId: organizationId } of organizations)
      await recordOrganizationAudit(db, person, { action: 'organization.recovered', organizationId });
    await notifications.notify(transaction, {
      userId,
      email,
      template: 'account-recovered',
      params: { at: formatUtc(new Date()), ip },
    });
    for (const recovered of [account, ...organizations])
      outbox.enqueue(transaction, recovered.subjectId, { signal: buildPurgeCancel(recovered) });
  };
}
