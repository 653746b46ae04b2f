import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { claimExpiringKeys, type ExpiringKey } from '../api-keys/claim-expiring-keys.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';

export interface ExpiringKeyOptions {
  database: Database;
  notifications: NotificationService;
  personNotifications: PersonNotificationService;
}

const BATCH_SIZE = 100;

/**
 * Informs the person behind each key that expires within a week, or the owners if that person has left the organization.
 * Returns the number of keys.
 */
export function notifyExpiringKeys(options: ExpiringKeyOptions): Promise<number> {
  return options.database.systemTransaction(async (transaction) => {
    const keys = await claimExpiringKeys(transaction.db, BATCH_SIZE);
    for (const key of keys) await notify(options, transaction, key);
    return keys.length;
  });
}

async function notify(
  { notifications, personNotifications }: ExpiringKeyOptions,
  transaction: Transaction,
  key: ExpiringKey,
): Promise<void> {
  const { organizationId } = key;
  const params = {
    organizationId,
    keyId: key.id,
    keyName: key.name,
    lastFour: key.lastFour,
    expiresAt: formatUtc(key.expiresAt),
  };
  const dedupeKey = `api-key-expiring/${key.id}/${key.expiresAt.toISOString()}`;
  const creator = await findCreator(transaction.db, key);
  const notice = { template: 'api-key-expiring' as const, params, dedupeKey };
  if (creator) await personNotifications.notify(transaction, { ...creator, ...notice });
  else await notifications.notifyOwners(transaction, { organizationId, ...notice });
}

function findCreator(
  db: Db,
  { organizationId, createdByUserId }: ExpiringKey,
): Promise<{ userId: string; email: string } | undefined> {
  return db
    .selectFrom('users')
    .innerJoin('members', 'members.user_id', 'users.id')
    .select(['users.id as userId', 'users.email'])
    .where('members.org_id', '=', organizationId)
    .where('users.id', '=', createdByUserId)
    .where('users.deleted_at', 'is', null)
    .where('users.status', '=', 'active')
    .executeTakeFirst();
}
