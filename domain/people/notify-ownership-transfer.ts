import type { Transaction } from '../../platform/database/database.ts';
import { isSafeName } from '../identity/safe-name.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import type { Transfer } from '../organizations/ownership.service.ts';

/** Informs the former and the new owner of an organization. */
export async function notifyOwnershipTransfer(
  notifications: PersonNotificationService,
  transaction: Transaction,
  { organizationId, organizationName, from, to, ip }: Transfer,
): Promise<void> {
  const params = {
    organizationName: isSafeName(organizationName) ? organizationName : organizationId,
    from: from.email,
    to: to.email,
    at: formatUtc(new Date()),
    ip,
  };
  for (const { userId, email } of [from, to])
    await notifications.notify(transaction, {
      organizationId,
      userId,
      email,
      template: 'ownership-transferred',
      params,
    });
}
