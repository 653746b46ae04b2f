import { sql } from '@mikro-orm/core';
import type { Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { buildNotificationStart } from './notification-start.ts';
import type { TemplateName, TemplateParams } from './templates.ts';

export interface OwnerNotification<Name extends TemplateName> {
  organizationId: string;
  template: Name;
  params: TemplateParams[Name];
  /** Identifies the occasion: a repeated key creates no second email. */
  dedupeKey: string;
}

export interface NotificationService {
  /**
   * Creates an email to each owner of the organization. The runs that send them start after the transaction commits.
   */
  notifyOwners<Name extends TemplateName>(
    transaction: Transaction,
    notification: OwnerNotification<Name>,
  ): Promise<void>;
}

/** Maximum number of owners notified. */
const MAX_OWNERS = 100;

export function createNotificationService({
  outbox,
}: {
  outbox: Pick<Outbox, 'enqueue'>;
}): NotificationService {
  return {
    async notifyOwners(transaction, { organizationId, template, params, dedupeKey }) {
      const { em } = transaction;
      const owners = await em.execute<{ id: string; email: string }[]>(
        sql`select u.id, u.email from members m join users u on u.id = m.user_id
         where m.org_id = ${organizationId} and m.role = 'owner' order by u.id limit ${MAX_OWNERS}`,
      );
      for (const owner of owners) {
        const id = newId('notification');
        const written = await em.execute<{ id: string }[]>(
          sql`insert into notifications
             (id, org_id, user_id, email, template, params, dedupe_key, status, attempts, next_attempt_at, created_at)
           values (${id}, ${organizationId}, ${owner.id}, ${owner.email}, ${template},
             ${JSON.stringify(params)}::jsonb, ${`${dedupeKey}/${owner.id}`}, 'pending', 0, now(), now())
           on conflict (dedupe_key) do nothing returning id`,
        );
        if (written.length > 0)
          outbox.enqueue(transaction, organizationId, {
            start: buildNotificationStart({ id, organizationId, userId: owner.id, template }),
          });
      }
    },
  };
}
