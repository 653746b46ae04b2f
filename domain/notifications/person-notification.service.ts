import type { SecretBox } from '../../platform/crypto.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { DUE_NOW } from '../../platform/database/database-time.ts';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { SealedColumn } from '../../platform/sealed-column.ts';
import type { Notification } from './notification.entity.ts';
import { buildNotificationStart } from './notification-run.ts';
import type { TemplateName, TemplateParams } from './templates.ts';

export interface PersonNotification<
  Name extends TemplateName,
  Secret extends keyof TemplateParams[Name] = never,
> {
  /** The organization on whose behalf the email is sent; unset for emails about the person's own account. */
  organizationId?: string;
  /** Null for a person who is not a user yet. */
  userId: string | null;
  /** The stored address of the account, never an address from a request. */
  email: string;
  template: Name;
  params: Omit<TemplateParams[Name], Secret>;
  /** Parameters that must not be readable in the database, such as tokens. */
  secrets?: Pick<TemplateParams[Name], Secret>;
  /** Identifies the occasion: a repeated key creates no second email. Default: every call creates an email. */
  dedupeKey?: string;
}

export type PersonNotificationService = ReturnType<typeof createPersonNotificationService>;

export function createPersonNotificationService({
  outbox,
  secretBox,
}: {
  outbox: Pick<Outbox, 'enqueue'>;
  secretBox: SecretBox;
}) {
  return {
    /** Creates an email to one person. Its run starts after the transaction commits. */
    async notify<Name extends TemplateName, Secret extends keyof TemplateParams[Name] = never>(
      transaction: Transaction,
      notification: PersonNotification<Name, Secret>,
    ): Promise<void> {
      const { organizationId = null, userId, email, template, params, secrets, dedupeKey } = notification;
      const id = newId('notification');
      const written = await transaction.db
        .insertInto('notifications')
        .values({
          id,
          org_id: organizationId,
          user_id: userId,
          email,
          template,
          params: json(params as Record<string, unknown>),
          sealed_params: secrets ? secretBox.seal(JSON.stringify(secrets), sealContext(id)) : null,
          dedupe_key: dedupeKey ?? id,
          next_attempt_at: DUE_NOW,
        })
        .onConflict((conflict) => conflict.column('dedupe_key').doNothing())
        .returning('id')
        .executeTakeFirst();
      if (!written) return;
      outbox.enqueue(transaction, organizationId ?? userId ?? id, {
        start: buildNotificationStart({ id, organizationId, userId, template }),
      });
    },
  };
}

/** Returns no parameters for an email without secrets. */
export function openSealedParams(
  secretBox: SecretBox,
  { id, sealedParams }: Pick<Notification, 'id' | 'sealedParams'>,
): Record<string, unknown> {
  return sealedParams === null ? {} : JSON.parse(secretBox.open(sealedParams, sealContext(id)));
}

const sealContext = (notificationId: string): string => `notification:${notificationId}`;

export const NOTIFICATION_SECRETS: SealedColumn = {
  table: 'notifications',
  column: 'sealed_params',
  key: ['id'],
  context: ({ id }) => sealContext(String(id)),
};

/**
 * Deletes the emails to a purged person, including those from before the person had an account, because the rows
 * contain the address. Returns the number of deleted emails. For workers.
 */
export async function deletePersonNotifications(
  db: Db,
  { userId, email }: { userId: string; email: string },
): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('notifications')
    .where((eb) => eb.or([eb('user_id', '=', userId), eb('email', '=', email)]))
    .executeTakeFirst();
  return Number(numDeletedRows);
}
